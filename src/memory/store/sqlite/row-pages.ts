import { numberOf } from '../row-values.ts';
import { RECORD_COLUMNS } from './record-row.ts';
import type { SqlDatabase, SqlRow } from './sql-database.ts';

/**
 * In the order of rows, of all tenants: with one tenant at a time, SQLite takes an index on the tenant and sorts all of its rows for
 * every page.
 */
export const SELECT_ROW_PAGE = `SELECT ${RECORD_COLUMNS} FROM record NOT INDEXED
  WHERE row > ? AND tenant IN (SELECT no FROM tenant WHERE erasing = 0) ORDER BY row LIMIT ?`;

/** The next rows behind one; none of a tenant that is being erased. */
export const readRowPage = (database: SqlDatabase, after: number, numRows: number): readonly SqlRow[] =>
  database.prepare(SELECT_ROW_PAGE).all(after, numRows);

/** 0 without rows. */
export const lastRowOf = (database: SqlDatabase): number =>
  numberOf(database.prepare('SELECT coalesce(max(row), 0) AS row FROM record').all()[0]!['row']);
