import type { EdgeQuery, MemoryEdge } from '../../types.ts';
import type { EdgeKey } from '../check-query.ts';
import type { Names } from './schema.ts';
import type { SqlClient, SqlValue } from './sql-client.ts';
import { checkEdgeRow, missingEnd, type NewEdge, openEdge, relationHash, sealEdge } from '../sealed-edge.ts';
import type { Tenant } from '../sealer.ts';
import { numberOf, textOf } from '../row-values.ts';

export interface Edges {
  /** In a transaction. */
  put(client: SqlClient, tenant: Tenant, edges: readonly NewEdge[], nowMs: number): Promise<void>;
  find(client: SqlClient, tenant: Tenant, query: EdgeQuery): Promise<readonly MemoryEdge[]>;
  delete(client: SqlClient, tenant: Tenant, keys: readonly EdgeKey[]): Promise<number>;
  /** Throws for a damaged edge. */
  check(client: SqlClient, tenant: Tenant): Promise<void>;
}

const CHECK_ROWS = 1000;

const COLUMNS = `e.source, e.target, e.relation, e.weight, e.updated_ms, e.sealed, a.id AS source_id, b.id AS target_id`;

export function createEdges({ table }: Names): Edges {
  const edge = table('edge');
  const joins = `JOIN ${table('record')} AS a ON a."row" = e.source JOIN ${table('record')} AS b ON b."row" = e.target`;

  async function rowsOf(client: SqlClient, tenant: Tenant, ids: readonly string[], lock: string) {
    const sql = `SELECT "row", id FROM ${table('record')} WHERE tenant = $1 AND id = ANY($2::uuid[]) ORDER BY id ${lock}`;
    const { rows } = await client.query(sql, [tenant.no, [...new Set(ids)]]);
    return new Map(rows.map((row) => [textOf(row['id']), numberOf(row['row'])]));
  }

  return {
    async put(client, tenant, edges, nowMs) {
      const ids = edges.flatMap(({ from, to }) => [from, to]);
      const rows = await rowsOf(client, tenant, ids, 'FOR KEY SHARE');
      const lost = ids.find((id) => !rows.has(id));
      if (lost !== undefined) throw missingEnd(lost);
      const sealedRows = edges.map((edge) => {
        const { hash, sealed } = sealEdge(tenant, edge, nowMs);
        const values = [rows.get(edge.from)!, rows.get(edge.to)!, hash, edge.weight, sealed] as const;
        return { key: `${edge.from} ${edge.to} ${hash}`, values };
      });
      // The last of duplicates: a statement may not write a row twice.
      const unique = [...new Map(sealedRows.map(({ key, values }) => [key, values])).entries()];
      const sorted = unique.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, values]) => values);
      const column = (i: 0 | 1 | 2 | 3 | 4): SqlValue => sorted.map((values) => values[i]);
      await client.query(
        `INSERT INTO ${edge} (source, target, relation, weight, sealed, tenant, updated_ms)
         SELECT u.source, u.target, u.relation, u.weight, u.sealed, $6, $7
         FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::double precision[], $5::bytea[])
           AS u(source, target, relation, weight, sealed)
         ON CONFLICT (source, target, relation) DO UPDATE
           SET weight = excluded.weight, sealed = excluded.sealed, updated_ms = excluded.updated_ms`,
        [column(0), column(1), column(2), column(3), column(4), tenant.no, nowMs],
      );
    },

    async find(client, tenant, { ids, direction, relations, limit }) {
      const rows = [...(await rowsOf(client, tenant, ids, '')).values()];
      const ends = { out: ['source'], in: ['target'], both: ['source', 'target'] }[direction];
      const hashes = relations?.map((relation) => relationHash(tenant, relation));
      const only = hashes === undefined ? '' : 'AND relation = ANY($3::text[])';
      // UNION instead of OR: each part uses its own index.
      const keys = ends.map(
        (end) => `SELECT source, target, relation FROM ${edge} WHERE ${end} = ANY($1::bigint[]) ${only}`,
      );
      const sql = `SELECT ${COLUMNS} FROM (${keys.join(' UNION ')}) AS k JOIN ${edge} AS e ON e.source = k.source
        AND e.target = k.target AND e.relation = k.relation ${joins}
        ORDER BY e.weight DESC, a.id, b.id, e.relation COLLATE "C" LIMIT $2`;
      const values = hashes === undefined ? [rows, limit] : [rows, limit, hashes];
      return (await client.query(sql, values)).rows.map((row) => openEdge(row, tenant, textOf));
    },

    async delete(client, tenant, keys) {
      const rows = await rowsOf(client, tenant, keys.flatMap(({ from, to }) => [from, to]), ''); // prettier-ignore
      const known = keys.filter(({ from, to }) => rows.has(from) && rows.has(to));
      const sql = `DELETE FROM ${edge} AS e USING unnest($1::bigint[], $2::bigint[], $3::text[]) AS u(source, target, relation)
        WHERE e.source = u.source AND e.target = u.target AND e.relation = u.relation`;
      const { numChanges } = await client.query(sql, [
        known.map(({ from }) => rows.get(from)!),
        known.map(({ to }) => rows.get(to)!),
        known.map(({ relation }) => relationHash(tenant, relation)),
      ]);
      return numChanges;
    },

    async check(client, tenant) {
      const sql = `SELECT ${COLUMNS} FROM ${edge} AS e ${joins} WHERE e.tenant = $1
        AND (e.source, e.target, e.relation) > ($2::bigint, $3::bigint, $4::text)
        ORDER BY e.source, e.target, e.relation LIMIT ${CHECK_ROWS}`;
      for (let last: SqlValue[] = [0, 0, '']; ;) {
        const { rows } = await client.query(sql, [tenant.no, ...last]);
        if (rows.length === 0) return;
        for (const row of rows) checkEdgeRow(row, tenant, textOf);
        const end = rows.at(-1)!;
        last = [numberOf(end['source']), numberOf(end['target']), textOf(end['relation'])];
      }
    },
  };
}
