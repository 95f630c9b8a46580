import { RuvLLMError } from '../../../core/errors.ts';
import { checkRegistry, MEMORY_FIELDS, type FieldRegistry } from '../../fields.ts';
import type { MatchedRecord, MemoryRecord, MemoryStore, NearRecord } from '../../types.ts';
import { checkIds, checkPuts, type CheckedPut } from '../check-put.ts';
import {
  checkCount,
  checkEdgeKey,
  checkEdgeQuery,
  checkEdges,
  checkFind,
  checkMatch,
  checkNearest,
} from '../check-query.ts';
import { checkInteger } from '../../../core/options.ts';
import { checkList, checkTenant, checkTime } from '../checks.ts';
import { pageOf } from '../cursor.ts';
import { STORE_LIMITS } from '../limits.ts';
import { missingEnd } from '../sealed-edge.ts';
import { checkStore } from './check-store.ts';
import { createEdges } from './edges.ts';
import { eraseRows } from './erase-rows.ts';
import { groupBy } from '../../common/group-by.ts';
import { createMatch } from './match.ts';
import { createNearest } from './nearest.ts';
import { withRetries } from './postgres-errors.ts';
import { createPutRecords } from './put-records.ts';
import { createRecords } from './records.ts';
import { createNames, migrate, replaceHeader, type VectorMode } from './schema.ts';
import { createSegments, type SegmentTable } from './segments.ts';
import type { SqlClient, SqlPool } from './sql-client.ts';
import { readStats } from './stats.ts';
import { createTenants, type WrappedKeys } from './tenants.ts';
import type { Tenant } from '../sealer.ts';
import { createVectorSets } from './vector-sets.ts';
import { createVectorTables, EXACT_ROWS } from './vector-tables.ts';
import { createWriteGate } from './write-gate.ts';

export interface PostgresStoreOptions {
  /** Closed with the store. */
  readonly pool: SqlPool;
  /** The sealed secrets; `open` throws `invalid_option` for another master key. */
  readonly header: { create(): string; open(header: string): WrappedKeys };
  readonly now: () => number;
  /** `sealed` hides vectors from the database and compares them here. Default: `pgvector`. */
  readonly vectors?: VectorMode;
  /** Default: `ruvllm`. */
  readonly schema?: string;
  /** Default: `MEMORY_FIELDS`. */
  readonly fields?: FieldRegistry;
  /** Sets up to this size are searched exhaustively. Default 5000. */
  readonly exactRows?: number;
}

export interface PostgresStore extends MemoryStore {
  readonly archive: SegmentTable;
  /** Replaces the header; `make` gets the current one. */
  replaceHeader(make: (header: string) => string): Promise<void>;
}

/**
 * The memory in PostgreSQL, shared by processes. Rows are sealed as in SQLite, and a call is one transaction. A lost connection
 * is a retryable `io` error; the next call reconnects.
 */
export async function createPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { pool, header, now, vectors: mode = 'pgvector', fields = MEMORY_FIELDS, exactRows = EXACT_ROWS } = options;
  const names = createNames(options.schema ?? 'ruvllm');
  const clock = (): number => checkTime(Math.floor(now()), 'now');
  const registry = checkRegistry(fields);
  const { keys, extension } = await withRetries(() =>
    migrate(pool, { names, mode, fields: registry, nowMs: clock(), header }),
  );
  const tenants = createTenants(names, keys);
  const records = createRecords(names);
  const edges = createEdges(names);
  const sets = createVectorSets(names);
  const vectors = extension === null ? null : createVectorTables(pool, names, extension, exactRows);
  const putRecords = createPutRecords({ names, sets, vectors });
  const nearest = createNearest({ pool, names, records, sets, vectors });
  const match = createMatch({ pool, names, records, hasTerms: vectors !== null });
  const gate = createWriteGate();
  let isClosed = false;
  for (const no of await tenants.beingErased(pool)) await eraseRows(pool, names, no);

  function checkOpen(): void {
    if (isClosed) throw new RuvLLMError('io', 'the memory is closed');
  }

  /** `none`: the result for a tenant without data. */
  async function read<T>(tenant: string, none: T, run: (tenant: Tenant) => Promise<T>): Promise<T> {
    checkOpen();
    checkTenant(tenant);
    const found = await tenants.find(pool, tenant);
    return found === null ? none : run(found);
  }

  function write<T>(run: (client: SqlClient) => Promise<T>): Promise<T> {
    return gate.run(() => withRetries(() => pool.transaction(run)));
  }

  /** Locks the tenant against erasure during the write. */
  async function writeFor<T>(name: string, none: () => T, run: (client: SqlClient, tenant: Tenant) => Promise<T>) {
    checkOpen();
    checkTenant(name);
    return write(async (client) => {
      const tenant = await tenants.hold(client, name);
      return tenant === null ? none() : run(client, tenant);
    });
  }

  async function putAll(client: SqlClient, puts: readonly CheckedPut[]) {
    const nowMs = clock();
    const versions = new Map<CheckedPut, number>();
    // All processes lock tenants in the order of ids, which prevents deadlocks.
    const groups = [...groupBy(puts, ({ tenant }) => tenant)].map(([name, of]) => ({ id: keys.idOf(name), name, of }));
    for (const { name, of } of groups.sort((a, b) => (a.id < b.id ? -1 : 1))) {
      const tenant = await tenants.obtain(client, name);
      const written = await putRecords(client, tenant, of, nowMs);
      for (const put of of) versions.set(put, written.get(put.id)!);
    }
    return puts.map((put) => ({ id: put.id, version: versions.get(put)! }));
  }

  return {
    archive: createSegments(pool, names, tenants),

    async replaceHeader(make) {
      checkOpen();
      await pool.transaction((client) => replaceHeader(client, names, make));
    },

    async put(given) {
      checkOpen();
      const puts = checkPuts(given, fields);
      return gate.run(async () => {
        await vectors?.prepare(puts.flatMap(({ vector }) => (vector === null ? [] : [vector.length])));
        return withRetries(() => pool.transaction((client) => putAll(client, puts)));
      });
    },

    async get(tenant, ids) {
      checkIds(ids);
      const none: readonly (MemoryRecord | null)[] = ids.map(() => null);
      return read(tenant, none, (found) => records.get(pool, found, tenant, ids));
    },

    async find(tenant, query) {
      const checked = checkFind(query, fields);
      return read(tenant, { records: [], next: null }, async (found) => {
        const oneMore = { ...checked, limit: checked.limit + 1 };
        return pageOf(await records.find(pool, found, tenant, oneMore), checked.limit);
      });
    },

    async count(tenant, query) {
      const filter = checkCount(query, fields);
      return read(tenant, 0, (found) => records.count(pool, found, filter));
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
      const unique = [...new Set(checkIds(ids))];
      return writeFor(tenant, () => 0, (client, found) => records.delete(client, found, unique)); // prettier-ignore
    },

    async putEdges(tenant, given) {
      const checked = checkEdges(given);
      const none = (): never => {
        throw missingEnd(checked[0]!.from);
      };
      await writeFor<void>(tenant, none, (client, found) => edges.put(client, found, checked, clock()));
    },

    async edgesOf(tenant, query) {
      checkEdgeQuery(query);
      return read(tenant, [], (found) => edges.find(pool, found, query));
    },

    async deleteEdges(tenant, given) {
      const checked = checkList(given, 'edges', 0, STORE_LIMITS.itemsPerCall).map(checkEdgeKey);
      return writeFor(tenant, () => 0, (client, found) => edges.delete(client, found, checked)); // prettier-ignore
    },

    async sweepExpired(nowMs, limit) {
      checkOpen();
      checkTime(nowMs, 'nowMs');
      checkInteger(limit, 'limit', 1, STORE_LIMITS.sweep);
      return write((client) => records.sweep(client, nowMs, limit));
    },

    async eraseTenant(tenant) {
      checkOpen();
      checkTenant(tenant);
      await gate.alone(async () => {
        await withRetries(() => pool.transaction((client) => tenants.destroyKey(client, tenant)));
        for (const no of await tenants.beingErased(pool)) await eraseRows(pool, names, no);
      });
    },

    async stats(tenant) {
      checkOpen();
      const found = tenant === null ? null : await tenants.find(pool, checkTenant(tenant));
      return readStats(pool, names, tenant === null ? null : (found?.no ?? -1));
    },

    async checkIntegrity() {
      checkOpen();
      await checkStore({ pool, names, tenants, edges, vectors });
    },

    async close() {
      if (isClosed) return;
      isClosed = true;
      await gate.settle();
      await pool.close();
    },
  };
}
