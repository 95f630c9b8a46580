import { withRetries } from './postgres-errors.ts';
import type { Names } from './schema.ts';
import type { SqlPool } from './sql-client.ts';

/** Each part is a transaction of its own: a large tenant takes longer than one statement may. */
const PART_ROWS = 5000;

/** Deletes all of a tenant whose key is gone; two who do it at once do no harm, and what is left is left to the next opening. */
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
