import type { MemoryRecord } from '../../types.ts';
import type { CheckedFilter, CheckedFind } from '../check-query.ts';
import { kindNumber } from '../sqlite/record-row.ts';
import { filterToSql } from './filter-sql.ts';
import { openRow, RECORD_COLUMNS, type OpenedRow } from './record-rows.ts';
import type { Names } from './schema.ts';
import { createBinder, type SqlClient } from './sql-client.ts';
import type { Tenant } from '../sealer.ts';
import { numberOf } from '../row-values.ts';

export interface Records {
  get(client: SqlClient, tenant: Tenant, name: string, ids: readonly string[]): Promise<readonly (MemoryRecord | null)[]>; // prettier-ignore
  byRows(client: SqlClient, tenant: Tenant, name: string, rows: readonly number[]): Promise<readonly OpenedRow[]>;
  find(client: SqlClient, tenant: Tenant, name: string, query: CheckedFind): Promise<readonly MemoryRecord[]>;
  count(client: SqlClient, tenant: Tenant, filter: CheckedFilter): Promise<number>;
  /** With edges and vectors; returns how many existed. */
  delete(client: SqlClient, tenant: Tenant, ids: readonly string[]): Promise<number>;
  sweep(client: SqlClient, nowMs: number, limit: number): Promise<number>;
}

export function createRecords({ table }: Names): Records {
  const record = table('record');
  const select = `SELECT ${RECORD_COLUMNS} FROM ${record} AS r WHERE r.tenant = $1`;
  return {
    async get(client, tenant, name, ids) {
      const { rows } = await client.query(`${select} AND r.id = ANY($2::uuid[])`, [tenant.no, ids]);
      const found = new Map(rows.map((row) => [row['id'], row]));
      // Duplicate ids get separate objects.
      return ids.map((id) => {
        const row = found.get(id);
        return row === undefined ? null : openRow(row, tenant, name).record;
      });
    },

    async byRows(client, tenant, name, wanted) {
      const { rows } = await client.query(`${select} AND r."row" = ANY($2::bigint[])`, [tenant.no, wanted]);
      return rows.map((row) => openRow(row, tenant, name));
    },

    async find(client, tenant, name, { filter, order, limit, after }) {
      const binder = createBinder();
      const owner = binder.bind(tenant.no);
      const condition = filterToSql(filter, tenant.sealer, binder);
      const [direction, beyond] = order === 'newest' ? ['DESC', '<'] : ['ASC', '>'];
      const page =
        after === null
          ? ''
          : ` AND (r.created_ms, r.id) ${beyond} (${binder.bind(after.createdMs)}::bigint, ${binder.bind(after.id)}::uuid)`;
      const max = binder.bind(limit);
      // One part per kind, so that an index gives the order of each.
      const parts = filter.kinds.map(
        (kind) => `SELECT * FROM (SELECT ${RECORD_COLUMNS} FROM ${record} AS r
          WHERE r.tenant = ${owner} AND r.kind = ${kindNumber(kind)}${condition}${page}
          ORDER BY r.created_ms ${direction}, r.id ${direction} LIMIT ${max}) AS k${kindNumber(kind)}`,
      );
      const sql = `SELECT * FROM (${parts.join(' UNION ALL ')}) AS p ORDER BY created_ms ${direction}, id ${direction} LIMIT ${max}`;
      const { rows } = await client.query(sql, binder.values);
      return rows.map((row) => openRow(row, tenant, name).record);
    },

    async count(client, tenant, filter) {
      const binder = createBinder();
      const owner = binder.bind(tenant.no);
      const kinds = binder.bind(filter.kinds.map(kindNumber));
      const sql = `SELECT count(*) AS n FROM ${record} AS r WHERE r.tenant = ${owner} AND r.kind = ANY(${kinds}::smallint[])`;
      const { rows } = await client.query(sql + filterToSql(filter, tenant.sealer, binder), binder.values);
      return numberOf(rows[0]?.['n']);
    },

    async delete(client, tenant, ids) {
      const sql = `DELETE FROM ${record} WHERE tenant = $1 AND id = ANY($2::uuid[])`;
      return (await client.query(sql, [tenant.no, ids])).numChanges;
    },

    async sweep(client, nowMs, limit) {
      // Locked rows are left to the next sweep.
      const sql = `DELETE FROM ${record} WHERE "row" IN (SELECT "row" FROM ${record} WHERE expires_ms <= $1
        ORDER BY expires_ms, "row" LIMIT $2 FOR UPDATE SKIP LOCKED)`;
      return (await client.query(sql, [nowMs, limit])).numChanges;
    },
  };
}
