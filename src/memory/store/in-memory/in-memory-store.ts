import { cosine } from '../../common/cosine.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { checkInteger, integerOption, resolveOptions } from '../../../core/options.ts';
import { createLexicalIndex, type LexicalIndex } from '../../lexical/lexical-index.ts';
import { searchLexical } from '../../lexical/search-lexical.ts';
import { searchableText } from '../../search/record-text.ts';
import { checkRegistry, MEMORY_FIELDS, type FieldRegistry } from '../../fields.ts';
import type {
  MatchedRecord,
  MemoryEdge,
  MemoryRecord,
  MemoryStore,
  NearRecord,
  RecordKind,
  StoreStats,
} from '../../types.ts';
import { checkIds, checkPuts } from '../check-put.ts';
import {
  checkCount,
  checkEdgeKey,
  checkEdgeQuery,
  checkEdges,
  checkFind,
  checkMatch,
  checkNearest,
  type CheckedFilter,
} from '../check-query.ts';
import { checkLength, checkList, checkTenant, checkTime } from '../checks.ts';
import { compareCursors, formatCursor } from '../cursor.ts';
import { passesFilter } from '../filter.ts';
import { STORE_LIMITS } from '../limits.ts';
import { missingEnd } from '../sealed-edge.ts';
import { createEdgeList, type EdgeList } from './edge-list.ts';
import { createEntries, replaceEntry, restoreEntry, toRecord, type Entries, type Entry } from './entries.ts';

export interface InMemoryStoreLimits {
  /** Default 10 000. */
  readonly maxRecords?: number;
  /** Default 64 MiB. */
  readonly maxBytes?: number;
  /** Default 100 000. */
  readonly maxEdges?: number;
}

interface InMemoryStoreOptions {
  readonly now: () => number;
  /** Default: `MEMORY_FIELDS`. */
  readonly fields?: FieldRegistry;
  readonly limits?: InMemoryStoreLimits;
}

/** Evicts the least recently used records when full; `dropped` counts them. */
export interface InMemoryStore extends MemoryStore {
  readonly dropped: number;
  /** Everything in it, as `restore` takes it. */
  dump(): StoreDump;
  /** Adds records and edges as they were, with their versions and times. */
  restore(dump: StoreDump): void;
}

/** Records, older rows first, and edges of all tenants. */
export interface StoreDump {
  readonly records: readonly MemoryRecord[];
  readonly edges: readonly (MemoryEdge & { readonly tenant: string })[];
}

/** A memory that lasts as long as the process: for tests, and as a fallback when the disk fails. */
export function createInMemoryStore({ now, fields = MEMORY_FIELDS, limits }: InMemoryStoreOptions): InMemoryStore {
  const { maxRecords, maxBytes, maxEdges } = resolveOptions<Required<InMemoryStoreLimits>>('limits', limits, {
    maxRecords: integerOption(10_000, 1, 10_000_000),
    maxBytes: integerOption(2 ** 26, 1, Number.MAX_SAFE_INTEGER),
    maxEdges: integerOption(100_000, 1, 10_000_000),
  });
  checkRegistry(fields);
  const entries = createEntries();
  const texts = new Map<string, Map<RecordKind, LexicalIndex>>();
  const edges = new Map<string, EdgeList>();
  let numEdges = 0;
  let nextRow = 1;
  let dropped = 0;
  let isClosed = false;

  function checkOpen(tenant?: string): void {
    if (isClosed) throw new RuvLLMError('io', 'the memory is closed');
    if (tenant !== undefined) checkTenant(tenant);
  }

  function textsOf({ head: { tenant, kind } }: Entry): LexicalIndex {
    const indexes = texts.get(tenant) ?? new Map<RecordKind, LexicalIndex>();
    const index = indexes.get(kind) ?? createLexicalIndex();
    texts.set(tenant, indexes.set(kind, index));
    return index;
  }

  function changeEdges<T>(tenant: string, run: (list: EdgeList) => T): T {
    const list = edges.get(tenant) ?? createEdgeList();
    numEdges -= list.size;
    try {
      return run(list);
    } finally {
      numEdges += list.size;
      if (list.size === 0) edges.delete(tenant);
      else edges.set(tenant, list);
    }
  }

  function remove(entry: Entry): void {
    entries.delete(entry);
    textsOf(entry).delete(entry.row);
    changeEdges(entry.head.tenant, (list) => list.deleteOf(entry.head.id));
  }

  function add(entry: Entry): void {
    entries.set(entry);
    textsOf(entry).set(entry.row, searchableText(toRecord(entry, false)));
  }

  function makeRoom(): void {
    for (const entry of entries.all()) {
      if (entries.size <= maxRecords && entries.sizeBytes <= maxBytes) break;
      remove(entry);
      dropped++;
    }
    for (const tenant of edges.keys()) {
      while (numEdges > maxEdges && changeEdges(tenant, (list) => list.deleteOldest())) dropped++;
    }
  }

  const passing = (tenant: string, filter: CheckedFilter): Entry[] =>
    [...entries.of(tenant)].filter(({ head }) => passesFilter(head, filter));

  return {
    get dropped() {
      return dropped;
    },

    async put(given) {
      checkOpen();
      const puts = checkPuts(given, fields);
      const nowMs = checkTime(Math.floor(now()), 'now');
      const made = puts.map((put) => {
        return replaceEntry(put, entries.get(put.tenant, put.id), nextRow++, nowMs);
      });
      checkLengths(made, entries);
      made.forEach(add);
      makeRoom();
      return made.map(({ head }) => ({ id: head.id, version: head.version }));
    },

    async get(tenant, ids) {
      checkOpen(tenant);
      return checkIds(ids).map((id) => {
        const entry = entries.get(tenant, id);
        if (entry === undefined) return null;
        entries.touch(entry);
        return toRecord(entry);
      });
    },

    async find(tenant, query) {
      checkOpen(tenant);
      const { filter, order, limit, after } = checkFind(query, fields);
      const sign = order === 'newest' ? -1 : 1;
      const found = passing(tenant, filter)
        .filter(({ head }) => after === null || sign * compareCursors(head, after) > 0)
        .sort((a, b) => sign * compareCursors(a.head, b.head));
      const page = found.slice(0, limit);
      page.forEach(entries.touch);
      return {
        records: page.map((entry) => toRecord(entry)),
        next: found.length > limit ? formatCursor(page.at(-1)!.head) : null,
      };
    },

    async count(tenant, query) {
      checkOpen(tenant);
      return passing(tenant, checkCount(query, fields)).length;
    },

    async nearest(tenant, query) {
      checkOpen(tenant);
      const { filter, vector, space, k, withVectors } = checkNearest(query, fields);
      const hits = passing(tenant, filter)
        .filter(({ head }) => head.space === space)
        .map((entry) => {
          checkLength(vector.length, entry.head.vector!.length);
          return { entry, similarity: cosine(vector, entry.head.vector!) };
        });
      const best = hits.sort((a, b) => b.similarity - a.similarity || a.entry.row - b.entry.row).slice(0, k);
      for (const { entry } of best) entries.touch(entry);
      return best.map(({ entry, similarity }): NearRecord => ({ record: toRecord(entry, withVectors), similarity }));
    },

    async match(tenant, query) {
      checkOpen(tenant);
      const { filter, k, withVectors, ...words } = checkMatch(query, fields);
      const byRow = new Map(passing(tenant, filter).map((entry) => [entry.row, entry]));
      const searched = filter.kinds.flatMap((kind) => {
        const index = texts.get(tenant)?.get(kind);
        return index === undefined ? [] : [{ index, filter: new Set(byRow.keys()) }];
      });
      return searchLexical(searched, words, k).map(({ row, score }): MatchedRecord => {
        const entry = byRow.get(row)!;
        entries.touch(entry);
        return { record: toRecord(entry, withVectors), score };
      });
    },

    async delete(tenant, ids) {
      checkOpen(tenant);
      const found = [...new Set(checkIds(ids))]
        .map((id) => entries.get(tenant, id))
        .filter((entry) => entry !== undefined);
      found.forEach(remove);
      return found.length;
    },

    async putEdges(tenant, given) {
      checkOpen(tenant);
      const checked = checkEdges(given);
      for (const id of checked.flatMap(({ from, to }) => [from, to])) {
        if (entries.get(tenant, id) === undefined) {
          throw missingEnd(id);
        }
      }
      const updatedMs = checkTime(Math.floor(now()), 'now');
      changeEdges(tenant, (list) => checked.forEach((edge) => list.put({ ...edge, updatedMs })));
      makeRoom();
    },

    async edgesOf(tenant, query) {
      checkOpen(tenant);
      return edges.get(tenant)?.find(checkEdgeQuery(query)) ?? (checkEdgeQuery(query), []);
    },

    async deleteEdges(tenant, given) {
      checkOpen(tenant);
      const keys = checkList(given, 'edges', 0, STORE_LIMITS.itemsPerCall).map(checkEdgeKey);
      return changeEdges(tenant, (list) => keys.filter((key) => list.delete(key)).length);
    },

    async sweepExpired(nowMs, limit) {
      checkOpen();
      checkTime(nowMs, 'nowMs');
      checkInteger(limit, 'limit', 1, STORE_LIMITS.sweep);
      const expired = [...entries.all()].filter(({ head }) => head.expiresMs !== null && head.expiresMs <= nowMs);
      const first = expired.sort((a, b) => a.head.expiresMs! - b.head.expiresMs!).slice(0, limit);
      first.forEach(remove);
      return first.length;
    },

    async eraseTenant(tenant) {
      checkOpen(tenant);
      for (const entry of entries.of(tenant)) remove(entry);
      texts.delete(tenant);
    },

    async stats(tenant) {
      checkOpen(tenant ?? undefined);
      const counted = countEntries(tenant === null ? entries.all() : entries.of(tenant));
      return {
        ...counted,
        numEdges: tenant === null ? numEdges : (edges.get(tenant)?.size ?? 0),
        diskBytes: 0,
        degraded: dropped === 0 ? null : `${dropped} records and edges were dropped to stay below ${maxRecords} records, ${maxBytes} bytes and ${maxEdges} edges`, // prettier-ignore
      };
    },

    async checkIntegrity() {
      checkOpen();
      const sum = [...edges.values()].reduce((total, list) => total + list.size, 0);
      if (sum !== numEdges) throw new RuvLLMError('internal', `${numEdges} edges counted, ${sum} found`);
    },

    dump: () => ({
      records: [...entries.all()].sort((a, b) => a.row - b.row).map((entry) => toRecord(entry)),
      edges: [...edges].flatMap(([tenant, list]) => [...list.all()].map((edge) => ({ ...edge, tenant }))),
    }),

    restore(dump) {
      for (const record of dump.records) add(restoreEntry(record, nextRow++));
      for (const { tenant, ...edge } of dump.edges) changeEdges(tenant, (list) => list.put(edge));
      makeRoom();
    },

    async close() {
      isClosed = true;
    },
  };
}

function countEntries(all: Iterable<Entry>): Pick<StoreStats, 'numRecords' | 'numVectors'> {
  const numRecords: Partial<Record<RecordKind, number>> = {};
  let numVectors = 0;
  for (const { head } of all) {
    numRecords[head.kind] = (numRecords[head.kind] ?? 0) + 1;
    if (head.vector !== null) numVectors++;
  }
  return { numRecords, numVectors };
}

/** Against the stored vectors, and against each other. */
function checkLengths(puts: readonly Entry[], entries: Entries): void {
  const lengths = new Map<string, number>();
  const storedLength = (head: Entry['head']): number | undefined => {
    for (const { head: other } of entries.of(head.tenant)) {
      if (other.kind === head.kind && other.space === head.space && other.id !== head.id) return other.vector?.length;
    }
    return undefined;
  };
  for (const { head } of puts) {
    if (head.vector === null) continue;
    const key = JSON.stringify([head.tenant, head.kind, head.space]);
    const { length } = head.vector;
    checkLength(length, lengths.get(key) ?? storedLength(head) ?? length);
    lengths.set(key, length);
  }
}
