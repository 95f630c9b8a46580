import { cosine } from '../../common/cosine.ts';
import type { NearRecord } from '../../types.ts';
import { hasConditions, type CheckedNearest } from '../check-query.ts';
import { filterToSql } from './filter-sql.ts';
import { openRow, RECORD_COLUMNS, type OpenedRow } from './record-rows.ts';
import type { Records } from './records.ts';
import type { Names } from './schema.ts';
import { createBinder, type SqlPool } from './sql-client.ts';
import type { Tenant } from '../sealer.ts';
import type { VectorSet, VectorSets } from './vector-sets.ts';
import type { VectorTables } from './vector-tables.ts';

interface NearestParts {
  readonly pool: SqlPool;
  readonly names: Names;
  readonly records: Records;
  readonly sets: VectorSets;
  /** Null: rows are opened and compared here. */
  readonly vectors: VectorTables | null;
}

/** Rows opened at once. */
const SCAN_ROWS = 500;

interface Hit extends NearRecord {
  readonly row: number;
}

/** Similarities are computed from the sealed vectors, not the database's copies. */
export function createNearest({ pool, names, records, sets, vectors }: NearestParts) {
  async function scan(tenant: Tenant, name: string, query: CheckedNearest, of: readonly VectorSet[]): Promise<Hit[]> {
    const binder = createBinder();
    const [owner, numbers] = [binder.bind(tenant.no), binder.bind(of.map(({ no }) => no))];
    const condition = filterToSql(query.filter, tenant.sealer, binder);
    const sql = `SELECT ${RECORD_COLUMNS} FROM ${names.table('record')} AS r
      WHERE r.tenant = ${owner} AND r.vector_set = ANY(${numbers}::bigint[])${condition}
      AND r."row" > $${binder.values.length + 1} ORDER BY r."row" LIMIT ${SCAN_ROWS}`;
    let best: Hit[] = [];
    for (let last = 0; ;) {
      const { rows } = await pool.query(sql, [...binder.values, last]);
      if (rows.length === 0) return best;
      const opened = rows.map((row) => openRow(row, tenant, name));
      best = rank([...best, ...compareAll(opened, query.vector)], query.k);
      last = opened.at(-1)!.row;
    }
  }

  async function search(
    tables: VectorTables,
    tenant: Tenant,
    name: string,
    query: CheckedNearest,
    of: readonly VectorSet[],
  ) {
    // prettier-ignore
    const found = await tables.search({
      sets: of,
      vector: query.vector,
      k: query.k,
      ef: query.ef,
      condition: (binder) => (hasConditions(query.filter) || query.filter.onlyTrusted ? filterToSql(query.filter, tenant.sealer, binder) : ''),
    });
    // Without records deleted or changed meanwhile.
    const current = new Set(of.map(({ no }) => no));
    const opened = await records.byRows(pool, tenant, name, found);
    const valid = opened.filter(({ head }) => head.vectorSet !== null && current.has(head.vectorSet));
    return rank(compareAll(valid, query.vector), query.k);
  }

  return async (tenant: Tenant, name: string, query: CheckedNearest): Promise<readonly NearRecord[]> => {
    const of = await sets.find(pool, tenant, query.filter.kinds, query.space, query.vector.length);
    if (of.length === 0) return [];
    const hits =
      vectors === null ? await scan(tenant, name, query, of) : await search(vectors, tenant, name, query, of);
    return hits.map(({ record, similarity }) => ({
      record: query.withVectors ? record : { ...record, vector: null },
      similarity,
    }));
  };
}

function compareAll(opened: readonly OpenedRow[], vector: Float32Array): Hit[] {
  return opened.flatMap(({ row, record }) =>
    record.vector === null ? [] : [{ row, record, similarity: cosine(vector, record.vector) }],
  );
}

function rank(hits: Hit[], k: number): Hit[] {
  return hits.sort((a, b) => b.similarity - a.similarity || a.row - b.row).slice(0, k);
}
