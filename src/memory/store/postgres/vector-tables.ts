import { groupBy } from '../../common/group-by.ts';
import { lockSchema, type Names } from './schema.ts';
import { createBinder, type Binder, type SqlClient, type SqlPool, type SqlRow } from './sql-client.ts';
import type { VectorExtension } from './vector-extension.ts';
import type { VectorSet } from './vector-sets.ts';
import { numberOf } from '../row-values.ts';

export interface PlacedVector {
  readonly row: number;
  readonly set: VectorSet;
  readonly vector: Float32Array;
}

interface VectorSearch {
  readonly sets: readonly VectorSet[];
  readonly vector: Float32Array;
  readonly k: number;
  readonly ef: number;
  /** Conditions on the record `r`, each starting with AND. */
  readonly condition: (binder: Binder) => string;
}

/** Vectors in pgvector, one table per length. */
export interface VectorTables {
  /** Outside of transactions: creates missing tables. */
  prepare(dims: Iterable<number>): Promise<void>;
  put(client: SqlClient, vectors: readonly PlacedVector[]): Promise<void>;
  remove(client: SqlClient, dim: number, rows: readonly number[]): Promise<void>;
  /** Rows of the nearest. */
  search(query: VectorSearch): Promise<readonly number[]>;
  /** Records without their vector, and vectors in another set than their record. */
  countMisplaced(client: SqlClient): Promise<number>;
}

/** The limit of pgvector's indexes; longer vectors are searched exhaustively. */
const MAX_INDEXED_DIM = 2000;
/** The limit of pgvector. */
const MAX_EF = 1000;
/** Smaller sets are searched exhaustively, which takes milliseconds and is exact. */
export const EXACT_ROWS = 5000;
const PUT_ROWS = 200;

export function createVectorTables(
  pool: SqlPool,
  names: Names,
  extension: VectorExtension,
  exactRows: number,
): VectorTables {
  const { schema: own, table } = names;
  const { schema, hasIterativeScan } = extension;
  const prepared = new Set<number>();
  const tableOf = (dim: number): string => table(`vector_${dim}`);
  const typeOf = (dim: number): string => `${schema}.vector(${dim})`;
  const distance = `v.embedding OPERATOR(${schema}.<=>)`;

  async function create(dim: number): Promise<void> {
    await pool.transaction(async (client) => {
      await lockSchema(client, names);
      await client.query(`CREATE TABLE IF NOT EXISTS ${tableOf(dim)} (
        "row" bigint PRIMARY KEY REFERENCES ${table('record')} ON DELETE CASCADE,
        vector_set bigint NOT NULL,
        embedding ${typeOf(dim)} NOT NULL
      )`);
      await client.query(`CREATE INDEX IF NOT EXISTS "vector_${dim}_set" ON ${tableOf(dim)} (vector_set)`);
      if (dim > MAX_INDEXED_DIM) return;
      await client.query(`CREATE INDEX IF NOT EXISTS "vector_${dim}_hnsw" ON ${tableOf(dim)}
        USING hnsw (embedding ${schema}.vector_cosine_ops) WITH (m = 16, ef_construction = 128)`);
    });
    prepared.add(dim);
  }

  const isFew = async (dim: number, sets: readonly number[]): Promise<boolean> => {
    const sql = `SELECT count(*) AS n FROM (SELECT 1 FROM ${tableOf(dim)} WHERE vector_set = ANY($1::bigint[]) LIMIT $2) AS few`;
    return numberOf((await pool.query(sql, [sets, exactRows + 1])).rows[0]?.['n']) <= exactRows;
  };

  async function run(query: VectorSearch, isExact: boolean): Promise<readonly number[]> {
    const dim = query.vector.length;
    const binder = createBinder();
    const sets = binder.bind(query.sets.map(({ no }) => no));
    const target = `${distance} ${binder.bind(unitText(query.vector))}::${typeOf(dim)}`;
    const condition = query.condition(binder);
    const join = condition === '' ? '' : `JOIN ${table('record')} AS r ON r."row" = v."row"`;
    const from = `FROM ${tableOf(dim)} AS v ${join} WHERE v.vector_set = ANY(${sets}::bigint[])${condition}`;
    const limit = binder.bind(query.k);
    if (isExact) {
      // Materialized, because the planner might use the index otherwise.
      const sql = `WITH c AS MATERIALIZED (SELECT v."row", ${target} AS distance ${from})
        SELECT "row" FROM c ORDER BY distance, "row" LIMIT ${limit}`;
      return rowsOf((await pool.query(sql, binder.values)).rows);
    }
    return pool.transaction(async (client) => {
      const ef = String(Math.min(MAX_EF, Math.max(query.ef, query.k)));
      await client.query(`SELECT set_config('hnsw.ef_search', $1, true)`, [ef]);
      if (hasIterativeScan) await client.query(`SELECT set_config('hnsw.iterative_scan', 'strict_order', true)`);
      const { rows } = await client.query(`SELECT v."row" ${from} ORDER BY ${target} LIMIT ${limit}`, binder.values);
      return rowsOf(rows);
    });
  }

  return {
    async prepare(dims) {
      for (const dim of new Set(dims)) if (!prepared.has(dim)) await create(dim);
    },

    async put(client, vectors) {
      for (const [dim, all] of groupBy(vectors, ({ set }) => set.dim)) {
        for (let start = 0; start < all.length; start += PUT_ROWS) {
          const some = all.slice(start, start + PUT_ROWS);
          await client.query(
            `INSERT INTO ${tableOf(dim)} ("row", vector_set, embedding)
             SELECT u."row", u.vector_set, u.embedding::${typeOf(dim)}
             FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS u("row", vector_set, embedding)
             ON CONFLICT ("row") DO UPDATE SET vector_set = excluded.vector_set, embedding = excluded.embedding`,
            [some.map(({ row }) => row), some.map(({ set }) => set.no), some.map(({ vector }) => unitText(vector))],
          );
        }
      }
    },

    async remove(client, dim, rows) {
      await client.query(`DELETE FROM ${tableOf(dim)} WHERE "row" = ANY($1::bigint[])`, [rows]);
    },

    async search(query) {
      const dim = query.vector.length;
      const numbers = query.sets.map(({ no }) => no);
      if (dim > MAX_INDEXED_DIM || (await isFew(dim, numbers))) return run(query, true);
      const found = await run(query, false);
      // The index stopped before k rows matched.
      return found.length < query.k ? run(query, true) : found;
    },

    async countMisplaced(client) {
      const { rows } = await client.query(`SELECT DISTINCT dim FROM ${table('vector_set')}`);
      let count = 0;
      for (const dim of rows.map((row) => numberOf(row['dim']))) {
        const exists = await client.query('SELECT to_regclass($1) IS NOT NULL AS yes', [`"${own}"."vector_${dim}"`]);
        const vectors =
          exists.rows[0]?.['yes'] === true ? tableOf(dim) : '(SELECT 0 AS "row", 0 AS vector_set LIMIT 0)';
        const { rows: found } = await client.query(
          `SELECT count(*) AS n FROM (SELECT r."row", r.vector_set FROM ${table('record')} AS r
             JOIN ${table('vector_set')} AS s ON s.no = r.vector_set WHERE s.dim = $1) AS a
           FULL JOIN ${vectors} AS b ON b."row" = a."row" AND b.vector_set = a.vector_set
           WHERE a."row" IS NULL OR b."row" IS NULL`,
          [dim],
        );
        count += numberOf(found[0]?.['n']);
      }
      return count;
    },
  };
}

const rowsOf = (rows: readonly SqlRow[]): number[] => rows.map((row) => numberOf(row['row']));

/** Normalized: the database learns only the direction. */
function unitText(vector: Float32Array): string {
  let squared = 0;
  for (const x of vector) squared += x * x;
  const scale = 1 / Math.sqrt(squared);
  return `[${Array.from(vector, (x) => Math.fround(x * scale)).join(',')}]`;
}
