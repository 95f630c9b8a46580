import type { RecordKind, StoreStats } from '../../types.ts';
import { kindOf } from './record-row.ts';
import type { SqlDatabase } from './sql-database.ts';
import { numberOf } from '../row-values.ts';

/** Counts of one tenant, or (null) of all. */
export function readStats(
  database: SqlDatabase,
  { tenant, diskBytes }: { readonly tenant: number | null; readonly diskBytes: (() => number) | undefined },
): StoreStats {
  const where = tenant === null ? '' : 'WHERE tenant = ?';
  const values = tenant === null ? [] : [tenant];
  const counts = database
    .prepare(`SELECT kind, count(*) AS n, count(vector_set) AS vectors FROM record ${where} GROUP BY kind`)
    .all(...values);
  const numRecords: Partial<Record<RecordKind, number>> = {};
  for (const row of counts) numRecords[kindOf(numberOf(row['kind']))] = numberOf(row['n']);
  const edges = database.prepare(`SELECT count(*) AS n FROM edge ${where}`).all(...values)[0];
  return {
    numRecords,
    numEdges: numberOf(edges?.['n']),
    numVectors: counts.reduce((sum, row) => sum + numberOf(row['vectors']), 0),
    diskBytes: diskBytes?.() ?? databaseBytes(database),
    degraded: null,
  };
}

function databaseBytes(database: SqlDatabase): number {
  const pages = numberOf(database.prepare('PRAGMA page_count').all()[0]?.['page_count']);
  return pages * numberOf(database.prepare('PRAGMA page_size').all()[0]?.['page_size']);
}
