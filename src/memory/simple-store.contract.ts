import { createHash } from 'node:crypto';
import { RuvLLMError } from '../core/errors.ts';
import type { MemoryServices } from './common/services.ts';
import { RECORD_FIELDS } from './schemas/record-fields.ts';
import type {
  EdgeQuery,
  FieldCondition,
  MemoryEdge,
  MemoryRecord,
  MemoryStore,
  PutRecord,
  RecordFilter,
  RecordKind,
} from './types.ts';

/** A clock that tests move. */
export interface TestServices extends MemoryServices {
  timeMs: number;
}

export function createTestServices(timeMs = Date.UTC(2026, 0, 1)): TestServices {
  let numIds = 0;
  const services: TestServices = {
    timeMs,
    now: () => services.timeMs,
    newId: () => `0199a0b4-7c00-7000-8000-${(++numIds).toString(16).padStart(12, '0')}`,
    sha256: (bytes) => new Uint8Array(createHash('sha256').update(bytes).digest()),
  };
  return services;
}

/** The domain parts' store in tests: the contract in maps, with a place to fail. */
export interface SimpleStore extends MemoryStore {
  /** Called before each operation; throws to make it fail. */
  onCall: (operation: string, argument: unknown) => void | Promise<void>;
  /** The rows themselves, for a test that plays the tamperer. */
  readonly rows: Map<string, MemoryRecord>;
  readonly edges: Map<string, MemoryEdge & { tenant: string }>;
}

const key = (tenant: string, ...parts: string[]): string => JSON.stringify([tenant, ...parts]);

function passes(record: MemoryRecord, filter: RecordFilter | undefined): boolean {
  if (record.createdMs < (filter?.createdFromMs ?? -Infinity)) return false;
  if (record.createdMs >= (filter?.createdToMs ?? Infinity)) return false;
  return (filter?.fields ?? []).every((condition) => holds(record, condition));
}

function holds(record: MemoryRecord, condition: FieldCondition): boolean {
  const value = record.fields[condition.field] ?? null;
  if (condition.is === 'in') return condition.values.includes(value);
  if (condition.is === '=') return value === condition.value;
  if (condition.is === '!=') return value !== condition.value;
  if (typeof value !== 'number') return false;
  const bound = condition.value as number;
  return { '<': value < bound, '<=': value <= bound, '>': value > bound, '>=': value >= bound }[condition.is];
}

/** A field of none of the kinds is refused; of the kinds that lack it, it is null. */
function checkFilter(kinds: readonly RecordKind[], filter: RecordFilter | undefined): void {
  for (const { field } of filter?.fields ?? []) {
    if (!kinds.some((kind) => RECORD_FIELDS[kind][field] !== undefined)) {
      throw new RuvLLMError('invalid_option', `field "${field}" is not one of ${kinds.join(', ')}`);
    }
  }
}

function checkRange(value: number, max: number): void {
  if (!Number.isSafeInteger(value) || value < 1 || value > max)
    throw new RuvLLMError('invalid_option', `${value} is not 1 to ${max}`);
}

function cosine(a: Float32Array, b: Float32Array): number {
  let dot = 0;
  let aa = 0;
  let bb = 0;
  for (let i = 0; i < a.length; i++) {
    dot += a[i]! * b[i]!;
    aa += a[i]! ** 2;
    bb += b[i]! ** 2;
  }
  return dot / Math.sqrt(aa * bb);
}

function checkPut(record: PutRecord): void {
  for (const [field, value] of Object.entries(record.fields)) {
    const type = RECORD_FIELDS[record.kind][field]?.type;
    const isRight = value === null || typeof value === (type === 'word' ? 'string' : type);
    if (type === undefined || !isRight || (typeof value === 'number' && !Number.isFinite(value))) {
      throw new RuvLLMError('invalid_option', `field "${field}" of ${record.kind} cannot be ${String(value)}`);
    }
  }
  if ((record.vector === null) !== (record.space === null))
    throw new RuvLLMError('invalid_option', 'vector without space');
}

export function createSimpleStore(services: MemoryServices): SimpleStore {
  const rows = new Map<string, MemoryRecord>();
  const edges = new Map<string, MemoryEdge & { tenant: string }>();
  const of = (tenant: string): MemoryRecord[] => [...rows.values()].filter((row) => row.tenant === tenant);
  const touches = (edge: MemoryEdge, { ids, direction }: EdgeQuery): boolean =>
    (direction !== 'in' && ids.includes(edge.from)) || (direction !== 'out' && ids.includes(edge.to));
  const store: SimpleStore = {
    onCall: () => {},
    rows,
    edges,
    async put(records) {
      await store.onCall('put', records);
      checkRange(records.length, 1000);
      for (const record of records) {
        checkPut(record);
        const version = rows.get(key(record.tenant, record.id))?.version ?? 0;
        if (record.ifVersion !== undefined && record.ifVersion !== version) {
          throw new RuvLLMError('conflict', `${record.id} is at version ${version}, not ${record.ifVersion}`);
        }
      }
      return records.map(({ ifVersion: _, ...record }) => {
        const old = rows.get(key(record.tenant, record.id));
        const nowMs = services.now();
        const row = structuredClone({
          createdMs: old?.createdMs ?? nowMs,
          ...record,
          updatedMs: nowMs,
          version: (old?.version ?? 0) + 1,
        });
        rows.set(key(record.tenant, record.id), row);
        return { id: row.id, version: row.version };
      });
    },
    async get(tenant, ids) {
      await store.onCall('get', ids);
      return ids.map((id) => structuredClone(rows.get(key(tenant, id)) ?? null));
    },
    async find(tenant, query) {
      await store.onCall('find', query);
      checkFilter(query.kinds, query.filter);
      checkRange(query.limit, 1000);
      const sign = query.order === 'newest' ? -1 : 1;
      const place = (row: MemoryRecord): string => `${String(row.createdMs).padStart(16, '0')}/${row.id}`;
      const found = of(tenant)
        .filter((row) => query.kinds.includes(row.kind) && passes(row, query.filter))
        .filter(
          (row) =>
            query.after === undefined || sign * (place(row) > query.after ? 1 : place(row) < query.after ? -1 : 0) > 0,
        )
        .sort((a, b) => sign * (place(a) < place(b) ? -1 : 1));
      const records = structuredClone(found.slice(0, query.limit));
      return { records, next: found.length > query.limit ? place(records.at(-1)!) : null };
    },
    async count(tenant, query) {
      await store.onCall('count', query);
      checkFilter(query.kinds, query.filter);
      return of(tenant).filter((row) => query.kinds.includes(row.kind) && passes(row, query.filter)).length;
    },
    async nearest(tenant, query) {
      await store.onCall('nearest', query);
      checkFilter(query.kinds, query.filter);
      checkRange(query.k, 1000);
      return of(tenant)
        .filter((row) => query.kinds.includes(row.kind) && row.space === query.space && passes(row, query.filter))
        .map((record) => ({ record: structuredClone(record), similarity: cosine(record.vector!, query.vector) }))
        .sort((a, b) => b.similarity - a.similarity || (a.record.id < b.record.id ? -1 : 1))
        .slice(0, query.k);
    },
    async delete(tenant, ids) {
      await store.onCall('delete', ids);
      let numDeleted = 0;
      for (const id of ids) {
        if (rows.delete(key(tenant, id))) numDeleted++;
        for (const [edgeKey, edge] of edges) {
          if (edge.tenant === tenant && (edge.from === id || edge.to === id)) edges.delete(edgeKey);
        }
      }
      return numDeleted;
    },
    async putEdges(tenant, list) {
      await store.onCall('putEdges', list);
      checkRange(list.length, 1000);
      for (const { from, to } of list) {
        const missing = [from, to].find((id) => !rows.has(key(tenant, id)));
        if (missing !== undefined) throw new RuvLLMError('not_found', `no record ${missing}`);
      }
      for (const edge of list) {
        edges.set(key(tenant, edge.from, edge.to, edge.relation), { ...edge, tenant, updatedMs: services.now() });
      }
    },
    async edgesOf(tenant, query) {
      await store.onCall('edgesOf', query);
      return [...edges.values()]
        .filter(
          (edge) =>
            edge.tenant === tenant && touches(edge, query) && (query.relations?.includes(edge.relation) ?? true),
        )
        .sort((a, b) => b.weight - a.weight)
        .slice(0, query.limit)
        .map(({ tenant: _, ...edge }) => edge);
    },
    async deleteEdges(tenant, list) {
      await store.onCall('deleteEdges', list);
      return list.filter(({ from, to, relation }) => edges.delete(key(tenant, from, to, relation))).length;
    },
    async sweepExpired(nowMs, limit) {
      const expired = [...rows.values()]
        .filter((row) => row.expiresMs !== null && row.expiresMs <= nowMs)
        .slice(0, limit);
      for (const row of expired) await store.delete(row.tenant, [row.id]);
      return expired.length;
    },
    async eraseTenant(tenant) {
      for (const row of of(tenant)) await store.delete(tenant, [row.id]);
    },
    stats: () => Promise.resolve({ numRecords: {}, numEdges: edges.size, numVectors: 0, diskBytes: 0, degraded: null }),
    checkIntegrity: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  return store;
}
