import { withRetries } from './postgres-errors.ts';
import type { Names } from './schema.ts';
import type { SqlPool } from './sql-client.ts';

/** One transaction per part: a large tenant would exceed the statement timeout. */
const PART_ROWS = 5000;

/** Deletes all rows of a tenant whose key is destroyed. Safe to run twice; the next opening finishes it. */
export async function eraseRows(pool: SqlPool, { table }: Names, no: number): Promise<void> {
  const part = `DELETE FROM ${table('record')} WHERE "row" IN
    (SELECT "row" FROM ${table('record')} WHERE tenant = $1 ORDER BY "row" LIMIT ${PART_ROWS})`;
  while ((await withRetries(() => pool.query(part, [no]))).numChanges > 0);
  await withRetries(() =>
    pool.transaction(async (client) => {
      await client.query(`DELETE FROM ${table('segment')} WHERE tenant = $1`, [no]);
      await client.query(`DELETE FROM ${table('vector_set')} WHERE tenant = $1`, [no]);
      await client.query(`DELETE FROM ${table('tenant')} WHERE no = $1 AND key IS NULL`, [no]);
    }),
  );
}
