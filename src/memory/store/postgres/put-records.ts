import { RuvLLMError } from '../../../core/errors.ts';
import { searchableText } from '../../search/record-text.ts';
import type { JsonValue, RecordKind } from '../../types.ts';
import { checkReplaces, type CheckedPut } from '../check-put.ts';
import { kindNumber, kindOf, sealRecord, visibleFields, type RowHead } from '../sqlite/record-row.ts';
import { groupBy } from '../../common/group-by.ts';
import { lexemesOf } from './match.ts';
import type { Names } from './schema.ts';
import type { SqlClient, SqlValue } from './sql-client.ts';
import type { Tenant } from '../sealer.ts';
import type { VectorSets } from './vector-sets.ts';
import type { PlacedVector, VectorTables } from './vector-tables.ts';
import { numberOf, numberOrNull, textOf } from '../row-values.ts';

/** Per statement; bytes are sent as hexadecimal digits, twice as long. */
const MAX_ROWS = 200;
const MAX_BYTES = 8 * 2 ** 20;
/** Rounds against others inserting the same ids: each round settles at least one record. */
const MAX_ROUNDS = 16;

/** The row that a put replaces. */
interface OldRecord {
  readonly row: number;
  readonly kind: RecordKind;
  readonly createdMs: number;
  readonly version: number;
  /** Length of its vector; null for none. */
  readonly dim: number | null;
}

interface SealedRow {
  readonly put: CheckedPut;
  readonly head: RowHead;
  readonly sealed: Uint8Array;
  /** Null: the database does not see terms. */
  readonly lexemes: ReturnType<typeof lexemesOf> | null;
  readonly old: OldRecord | undefined;
}

interface PutParts {
  readonly names: Names;
  readonly sets: VectorSets;
  /** Null: vectors are only in sealed rows. */
  readonly vectors: VectorTables | null;
}

/** Writes records of one tenant in a transaction; returns versions by id. Locks rows in the order of ids. */
export function createPutRecords({ names: { table }, sets, vectors }: PutParts) {
  const record = table('record');

  async function lockOld(client: SqlClient, tenant: Tenant, puts: readonly CheckedPut[]) {
    const { rows } = await client.query(
      `SELECT r."row", r.id, r.kind, r.created_ms, r.version,
         (SELECT s.dim FROM ${table('vector_set')} AS s WHERE s.no = r.vector_set) AS dim
       FROM ${record} AS r WHERE r.tenant = $1 AND r.id = ANY($2::uuid[]) ORDER BY r.id FOR NO KEY UPDATE OF r`,
      [tenant.no, puts.map(({ id }) => id)],
    );
    return new Map(
      rows.map((row): [string, OldRecord] => [
        textOf(row['id']),
        {
          row: numberOf(row['row']),
          kind: kindOf(numberOf(row['kind'])),
          createdMs: numberOf(row['created_ms']),
          version: numberOf(row['version']),
          dim: numberOrNull(row['dim']),
        },
      ]),
    );
  }

  /** Rows by id; without new ones that another process inserted meanwhile. */
  async function write(client: SqlClient, tenant: Tenant, rows: readonly SealedRow[], isNew: boolean) {
    if (rows.length === 0) return new Map<string, number>();
    const column = (of: (row: SealedRow) => SqlValue): SqlValue => rows.map(of);
    const values = [
      column(({ head }) => head.createdMs),
      column(({ head }) => head.updatedMs),
      column(({ head }) => head.expiresMs),
      column(({ head }) => head.version),
      column(({ head }) => head.vectorSet),
      column(({ head }) => head.fieldsText),
      column(({ sealed }) => sealed),
      column(({ lexemes }) => lexemes?.lexemes ?? null),
      column(({ lexemes }) => lexemes?.numTerms ?? null),
    ];
    const columns = 'created_ms, updated_ms, expires_ms, version, vector_set, fields, sealed, terms, num_terms';
    const types =
      '$1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::bytea[], $8::text[], $9::integer[]';
    const sql = isNew
      ? `INSERT INTO ${record} (tenant, id, kind, ${columns})
         SELECT $10, u.id, u.kind, created_ms, updated_ms, expires_ms, version, vector_set, fields::jsonb, sealed, terms::tsvector, num_terms
         FROM unnest(${types}, $11::uuid[], $12::smallint[]) AS u(${columns}, id, kind)
         ON CONFLICT (tenant, id) DO NOTHING RETURNING "row", id`
      : `UPDATE ${record} AS r SET created_ms = u.created_ms, updated_ms = u.updated_ms, expires_ms = u.expires_ms,
           version = u.version, vector_set = u.vector_set, fields = u.fields::jsonb, sealed = u.sealed,
           terms = u.terms::tsvector, num_terms = u.num_terms
         FROM unnest(${types}, $10::bigint[]) AS u(${columns}, "row") WHERE r."row" = u."row" RETURNING r."row", r.id`;
    const place = isNew
      ? [tenant.no, column(({ put }) => put.id), column(({ head }) => head.kind)]
      : [column(({ old }) => old!.row)];
    const result = await client.query(sql, [...values, ...place]);
    return new Map(result.rows.map((row) => [textOf(row['id']), numberOf(row['row'])]));
  }

  return async (client: SqlClient, tenant: Tenant, puts: readonly CheckedPut[], nowMs: number) => {
    const versions = new Map<string, number>();
    const setOf = await sets.obtain(client, tenant, puts);
    let remaining = puts.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    for (let round = 0; remaining.length > 0; round++) {
      if (round === MAX_ROUNDS) {
        throw new RuvLLMError('conflict', 'other processes keep writing the same records', { isRetryable: true });
      }
      const olds = await lockOld(client, tenant, remaining);
      for (const put of remaining) checkReplaces(put, olds.get(put.id));
      const seal = (put: CheckedPut): SealedRow => {
        const old = olds.get(put.id);
        const head: RowHead = {
          tenantId: tenant.id,
          id: put.id,
          kind: kindNumber(put.kind),
          createdMs: put.createdMs ?? old?.createdMs ?? nowMs,
          updatedMs: nowMs,
          expiresMs: put.expiresMs,
          version: (old?.version ?? 0) + 1,
          seq: 0,
          vectorSet: setOf.get(put)?.no ?? null,
          fieldsText: visibleFields(put.fields, tenant.sealer),
        };
        const text = (): string => searchableText({ ...put, body: JSON.parse(put.bodyText) as JsonValue });
        const lexemes = vectors === null ? null : lexemesOf(text(), tenant);
        return { put, head, sealed: sealRecord(put, head, tenant.sealer), lexemes, old };
      };
      for (const chunk of chunksOf(remaining)) {
        const sealed = chunk.map(seal);
        const inserted = await write(client, tenant, sealed.filter(({ old }) => old === undefined), true); // prettier-ignore
        const updated = await write(client, tenant, sealed.filter(({ old }) => old !== undefined), false); // prettier-ignore
        const rows = new Map([...inserted, ...updated]);
        const written = sealed.filter(({ put }) => rows.has(put.id));
        for (const { put, head } of written) versions.set(put.id, head.version);
        if (vectors !== null) {
          await removeMoved(client, vectors, written);
          const placed = written.flatMap(({ put }): PlacedVector[] =>
            put.vector === null ? [] : [{ row: rows.get(put.id)!, set: setOf.get(put)!, vector: put.vector }],
          );
          await vectors.put(client, placed);
        }
      }
      remaining = remaining.filter(({ id }) => !versions.has(id));
    }
    return versions;
  };
}

/** Vectors of another length are in another table. */
async function removeMoved(client: SqlClient, vectors: VectorTables, written: readonly SealedRow[]): Promise<void> {
  const moved = written.filter(({ old, put }) => (old?.dim ?? null) !== null && old!.dim !== put.vector?.length);
  for (const [dim, rows] of groupBy(moved, ({ old }) => old!.dim!)) {
    await vectors.remove(client, dim, rows.map(({ old }) => old!.row)); // prettier-ignore
  }
}

function* chunksOf(puts: readonly CheckedPut[]): Generator<readonly CheckedPut[]> {
  let chunk: CheckedPut[] = [];
  let sizeBytes = 0;
  for (const put of puts) {
    const putBytes = put.bodyText.length + (put.vector?.byteLength ?? 0);
    if (chunk.length > 0 && (chunk.length === MAX_ROWS || sizeBytes + putBytes > MAX_BYTES)) {
      yield chunk;
      chunk = [];
      sizeBytes = 0;
    }
    chunk.push(put);
    sizeBytes += putBytes;
  }
  if (chunk.length > 0) yield chunk;
}
