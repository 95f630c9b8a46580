import { RuvLLMError } from '../../../core/errors.ts';
import { parseUuid } from '../../../core/uuid.ts';
import { checkRegistry, MEMORY_FIELDS, type FieldRegistry } from '../../fields.ts';
import {
  ANSWER_KINDS,
  type MatchedRecord,
  type MemoryRecord,
  type MemoryStore,
  type NearRecord,
  type RecordKind,
} from '../../types.ts';
import type { VectorFilter, VectorIndex } from '../../vector-index/types.ts';
import { checkIds, checkPuts } from '../check-put.ts';
import {
  checkCount,
  checkEdgeKey,
  checkEdgeQuery,
  checkEdges,
  checkFind,
  checkMatch,
  checkNearest,
  hasConditions,
  type CheckedFilter,
  type CheckedMatch,
  type CheckedNearest,
} from '../check-query.ts';
import { checkInteger } from '../../../core/options.ts';
import { checkLength, checkList, checkTenant, checkTime } from '../checks.ts';
import { pageOf } from '../cursor.ts';
import { STORE_LIMITS } from '../limits.ts';
import { createLexicalSets, type LexicalFiles } from '../lexical-sets.ts';
import { missingEnd } from '../sealed-edge.ts';
import type { Tenant, TenantKeyRing } from '../sealer.ts';
import { createRowFilter, createVectorSets, type VectorIndexFiles } from '../vector-sets.ts';
import { checkStore } from './check-store.ts';
import { createEdges } from './edges.ts';
import { createGroupCommit } from './group-commit.ts';
import { createLexicalRows } from './lexical-rows.ts';
import { createRecordCache } from './record-cache.ts';
import { createRecords } from './records.ts';
import { migrate } from './schema.ts';
import { scrubRows } from './scrub.ts';
import { createSequence } from './sequence.ts';
import { inTransaction, type SqlDatabase } from './sql-database.ts';
import { type HeadOptions, openLedger, type StoredHead } from './store-head.ts';
import { readStats } from './stats.ts';
import { createTenants } from './tenants.ts';
import { createVectorRows } from './vector-rows.ts';
import { bytesOf, numberOf } from '../row-values.ts';

export interface SqliteStoreOptions {
  /** Exclusive; closed with the store. */
  readonly database: SqlDatabase;
  readonly keys: TenantKeyRing;
  readonly now: () => number;
  readonly createIndex: (dim: number) => VectorIndex | Promise<VectorIndex>;
  /** Default: none, indexes are rebuilt after a start. */
  readonly indexFiles?: VectorIndexFiles | null;
  /** Default: none, lexical indexes are rebuilt after a start. */
  readonly lexicalFiles?: LexicalFiles | null;
  /** Changes after which an index is saved. Default 5000. */
  readonly saveIndexEvery?: number;
  /** Default: `MEMORY_FIELDS`. */
  readonly fields?: FieldRegistry;
  /** Ends a turn whose writes share a transaction. Default: `queueMicrotask`. */
  readonly defer?: (run: () => void) => void;
  /** Called with problems that cost time only. Default: none. */
  readonly report?: (message: string) => void;
  /** Default: the size of the database. */
  readonly diskBytes?: () => number;
  readonly onClose?: () => void;
  /** The expected contents of the database. Default: not kept, and a loss is not noticed. */
  readonly head?: HeadOptions;
  /** Called when a loss or damage is noticed, once for each text. Default: none. */
  readonly onProblem?: (problem: string) => void;
}

/** A store that knows what it should contain. */
export interface SqliteStore extends MemoryStore {
  readonly state: {
    /** Lost or damaged contents, in words; null: none known. It is kept in the head until it is accepted. */
    problem(): string | null;
    head(): StoredHead;
    /** Reads every row once, page by page, and reports damage. */
    scrub(): Promise<void>;
    /** Commits all waiting writes and resolves when they are on disk. */
    flush(): Promise<void>;
  };
}

const MAX_CACHE_BYTES = 16 << 20;

/** Whether all conditions say which words an indexed field does not have. */
const isExclusion = ({ conditions, createdFromMs, createdToMs }: CheckedFilter): boolean =>
  createdFromMs === null &&
  createdToMs === null &&
  conditions.every(
    ({ is, isIndexed, type, values }) => is === '!=' && isIndexed && type === 'word' && values[0] !== null,
  );

/** The memory in SQLite with sealed rows, durable writes and vector indexes. */
export function createSqliteStore(options: SqliteStoreOptions): SqliteStore {
  const { database, keys, now, createIndex, indexFiles = null, lexicalFiles = null, fields = MEMORY_FIELDS } = options;
  const { defer = queueMicrotask, report = () => {}, onClose = () => {}, saveIndexEvery } = options;
  const { head = null, onProblem = () => {} } = options;
  migrate(database, checkRegistry(fields), now());
  const sequence = createSequence(database);
  const ledger = openLedger({
    database,
    head: head?.file ?? null,
    expected: head?.expected ?? 'absent',
    newGeneration: head?.newGeneration ?? (() => 0),
  });
  function addProblem(problem: string): void {
    if (ledger.problem()?.includes(problem) === true) return;
    ledger.addProblem(problem);
    onProblem(problem);
  }
  if (ledger.problem() !== null) onProblem(ledger.problem()!);
  if (head !== null && head.problem !== null) addProblem(head.problem);
  const commit = createGroupCommit({
    database,
    defer,
    onTransaction: ledger.count,
    onCommitted() {
      const seq = sequence.last();
      const onDurable = ledger.committed();
      return () => {
        sequence.settle(seq);
        onDurable();
      };
    },
  });
  const tenants = createTenants(database, keys);
  const edges = createEdges(database);
  const cache = createRecordCache(MAX_CACHE_BYTES);
  const records = createRecords({
    database,
    nextSeq: sequence.next,
    onVector: (setNo, row, vector) => sets.apply(setNo, row, vector),
    onText: (tenantNo, kind, row, text) => lexicalSets.apply(tenantNo, kind, row, text),
    onCount: ledger.note,
    onDamaged: (error) => addProblem(error.message),
    cache,
  });
  const rows = createVectorRows({ database, tenants, lastSeq: sequence.settled, commit });
  const sets = createVectorSets({
    createIndex,
    files: indexFiles,
    rows,
    report,
    ...(saveIndexEvery === undefined ? {} : { saveEvery: saveIndexEvery }),
  });
  const lexicalSets = createLexicalSets({
    files: lexicalFiles,
    rows: createLexicalRows({ database, lastSeq: sequence.settled, commit }),
    defer,
    report,
    ...(saveIndexEvery === undefined ? {} : { saveEvery: saveIndexEvery }),
  });
  let isClosed = false;
  for (const id of tenants.beingErased()) purge(id);

  /** `none`: the result for a tenant without data. */
  async function read<T>(tenant: string, none: T, run: (tenant: Tenant) => T | Promise<T>): Promise<T> {
    checkOpen();
    checkTenant(tenant);
    const found = tenants.find(tenant);
    return found === null ? none : run(found);
  }

  function checkOpen(): void {
    if (isClosed) throw new RuvLLMError('io', 'the memory is closed');
  }

  /** Returns what to call when it is on disk. */
  function purge(tenantId: string): () => void {
    keys.erase(tenantId);
    cache.clear();
    const no = tenants.numberOf(tenantId);
    if (no === null) return () => {};
    inTransaction(database, () => {
      database
        .prepare('DELETE FROM departure WHERE vector_set IN (SELECT no FROM vector_set WHERE tenant = ?)')
        .run(no);
      for (const table of ['edge', 'record', 'vector_set']) {
        database.prepare(`DELETE FROM ${table} WHERE tenant = ?`).run(no);
      }
      database.prepare('DELETE FROM tenant WHERE no = ?').run(no);
      ledger.count();
    });
    ledger.recount();
    return ledger.committed();
  }

  /** Null: all rows of the kind. */
  function passingRows(
    tenant: Tenant,
    kind: RecordKind,
    filter: CheckedFilter,
    hasVector: boolean,
  ): VectorFilter | null {
    const trusted = filter.onlyTrusted && ANSWER_KINDS.includes(kind) ? records.trusted(tenant, kind) : null;
    if (!hasConditions(filter)) return trusted && createRowFilter(trusted);
    if (!isExclusion(filter)) return createRowFilter(records.matching(tenant, kind, filter, hasVector));
    // An index has the few excluded rows; the others would all have to be read.
    const excluded = records.excluded(tenant, kind, filter);
    if (trusted !== null && excluded.size === 0) return createRowFilter(trusted);
    if (trusted !== null) return createRowFilter(new Set(Array.from(trusted).filter((row) => !excluded.has(row))));
    return excluded.size === 0 ? null : { has: (row) => !excluded.has(row) };
  }

  async function nearest(tenant: Tenant, name: string, query: CheckedNearest): Promise<readonly NearRecord[]> {
    const hits: { row: number; similarity: number }[] = [];
    for (const kind of query.filter.kinds) {
      const set = records.findSet(tenant, kind, query.space);
      if (set === null) continue;
      checkLength(query.vector.length, set.dim);
      const passing = passingRows(tenant, kind, query.filter, true);
      if (passing?.size === 0) continue;
      const found = await sets.search(set, {
        vector: query.vector,
        k: query.k,
        ef: query.ef,
        ...(passing === null ? {} : { filter: passing }),
      });
      for (const { key, score } of found) hits.push({ row: key, similarity: Math.min(1, Math.max(-1, score)) });
    }
    hits.sort((a, b) => b.similarity - a.similarity || a.row - b.row);
    const best = hits.slice(0, query.k);
    const byRow = records.byRows(tenant, name, best.map(({ row }) => row), query.withVectors); // prettier-ignore
    // A row may have been deleted while an index was opened.
    return best.flatMap(({ row, similarity }) => {
      const record = byRow.get(row);
      return record === undefined ? [] : [{ record, similarity }];
    });
  }

  async function match(tenant: Tenant, name: string, query: CheckedMatch): Promise<readonly MatchedRecord[]> {
    const { kinds } = query.filter;
    const searched = kinds.map((kind) => ({
      set: { tenant, kind },
      filter: passingRows(tenant, kind, query.filter, false),
    }));
    const hits = await lexicalSets.search(searched, query, query.k);
    const byRow = records.byRows(tenant, name, hits.map(({ row }) => row), query.withVectors); // prettier-ignore
    // A row may have been deleted while an index was opened.
    return hits.flatMap(({ row, score }) => {
      const record = byRow.get(row);
      return record === undefined ? [] : [{ record, score }];
    });
  }

  return {
    async put(given) {
      checkOpen();
      const puts = checkPuts(given, fields);
      return commit.submit((onCommit) => {
        // Tenants are looked up once, because a new one is not cached before the commit.
        const nowMs = checkTime(Math.floor(now()), 'now');
        const found = new Map<string, Tenant>();
        return puts.map((put) => {
          const tenant = found.get(put.tenant) ?? tenants.obtain(put.tenant, onCommit);
          found.set(put.tenant, tenant);
          return records.put(tenant, put, nowMs, onCommit);
        });
      });
    },

    async get(tenant, ids) {
      checkIds(ids);
      const none: (MemoryRecord | null)[] = ids.map(() => null);
      return read(tenant, none, (found) => ids.map((id) => records.get(found, tenant, id)));
    },

    async find(tenant, query) {
      const checked = checkFind(query, fields);
      return read(tenant, { records: [], next: null }, (found) => {
        const oneMore = { ...checked, limit: checked.limit + 1 };
        return pageOf(records.find(found, tenant, oneMore), checked.limit);
      });
    },

    async count(tenant, query) {
      const filter = checkCount(query, fields);
      return read(tenant, 0, (found) => records.count(found, filter));
    },

    async nearest(tenant, query) {
      const checked = checkNearest(query, fields);
      return read<readonly NearRecord[]>(tenant, [], (found) => nearest(found, tenant, checked));
    },

    async match(tenant, query) {
      const checked = checkMatch(query, fields);
      return read<readonly MatchedRecord[]>(tenant, [], (found) => match(found, tenant, checked));
    },

    async delete(tenant, ids) {
      checkIds(ids);
      const unique = [...new Set(ids)].map(parseUuid);
      return read(tenant, 0, ({ no }) =>
        commit.submit((onCommit) => {
          const gone = unique.map((id) => records.delete(no, id, onCommit)).filter((row) => row !== null);
          gone.forEach(edges.deleteOf);
          return gone.length;
        }),
      );
    },

    async putEdges(tenant, given) {
      checkOpen();
      checkTenant(tenant);
      const checked = checkEdges(given);
      await commit.submit(() => {
        const found = tenants.peek(tenant);
        if (found === null) throw missingEnd(checked[0]!.from);
        edges.put(found, checked, checkTime(Math.floor(now()), 'now'));
      });
    },

    async edgesOf(tenant, query) {
      checkEdgeQuery(query);
      return read(tenant, [], (found) => [...edges.find(found, query)]);
    },

    async deleteEdges(tenant, given) {
      const checked = checkList(given, 'edges', 0, STORE_LIMITS.itemsPerCall).map(checkEdgeKey);
      return read(tenant, 0, (found) => commit.submit(() => edges.delete(found, checked)));
    },

    async sweepExpired(nowMs, limit) {
      checkOpen();
      checkTime(nowMs, 'nowMs');
      checkInteger(limit, 'limit', 1, STORE_LIMITS.sweep);
      return commit.submit((onCommit) => {
        const expired = database
          .prepare('SELECT tenant, id FROM record WHERE expires_ms <= ? ORDER BY expires_ms LIMIT ?')
          .all(nowMs, limit);
        for (const row of expired) {
          const gone = records.delete(numberOf(row['tenant']), bytesOf(row['id']), onCommit);
          if (gone !== null) edges.deleteOf(gone);
        }
        return expired.length;
      });
    },

    async eraseTenant(tenant) {
      checkOpen();
      checkTenant(tenant);
      const id = await commit.submit((onCommit) => tenants.startErasing(tenant, onCommit));
      commit.commit(); // earlier writes for the tenant are purged too
      const onDurable = purge(id);
      tenants.forget(id);
      await commit.flush();
      onDurable();
      await sets.removeTenant(id);
      await lexicalSets.removeTenant(id);
    },

    async stats(tenant) {
      checkOpen();
      const found = tenant === null ? null : tenants.find(checkTenant(tenant));
      const no = found?.no ?? (tenant === null ? null : -1);
      const problem = ledger.problem();
      const stats = readStats(database, { tenant: no, diskBytes: options.diskBytes });
      return problem === null ? stats : { ...stats, degraded: problem, lost: problem };
    },

    async checkIntegrity() {
      checkOpen();
      await checkStore({ database, tenants, edges, sets, lexicalSets });
    },

    async close() {
      if (isClosed) return;
      commit.commit();
      await sets.close();
      await lexicalSets.close();
      commit.commit(); // deletes departures
      await commit.flush().catch(() => {}); // its writers get the error
      isClosed = true;
      database.close();
      ledger.close();
      onClose();
    },

    state: {
      problem: ledger.problem,
      head: ledger.snapshot,
      scrub: () => scrubRows({ database, tenants, isEnded: () => isClosed, defer, onDamaged: addProblem }),
      async flush() {
        commit.commit();
        await commit.flush();
      },
    },
  };
}
