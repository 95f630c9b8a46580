import type { RecordKind, StoreStats } from '../../types.ts';
import { kindOf } from '../sqlite/record-row.ts';
import type { Names } from './schema.ts';
import type { SqlClient } from './sql-client.ts';
import { numberOf } from '../row-values.ts';

/** Counts of one tenant, or (null) of all. */
export async function readStats(
  client: SqlClient,
  { schema, table }: Names,
  tenant: number | null,
): Promise<StoreStats> {
  const where = tenant === null ? '' : 'WHERE tenant = $1';
  const values = tenant === null ? [] : [tenant];
  const count = `SELECT kind, count(*) AS n, count(vector_set) AS vectors FROM ${table('record')} ${where} GROUP BY kind`;
  const { rows: counts } = await client.query(count, values);
  const numRecords: Partial<Record<RecordKind, number>> = {};
  for (const row of counts) numRecords[kindOf(numberOf(row['kind']))] = numberOf(row['n']);
  const edges = await client.query(`SELECT count(*) AS n FROM ${table('edge')} ${where}`, values);
  const size = await client.query(
    `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint AS bytes
     FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace WHERE s.nspname = $1 AND c.relkind = 'r'`,
    [schema],
  );
  return {
    numRecords,
    numEdges: numberOf(edges.rows[0]?.['n']),
    numVectors: counts.reduce((sum, row) => sum + numberOf(row['vectors']), 0),
    diskBytes: numberOf(size.rows[0]?.['bytes']),
    degraded: null,
  };
}
