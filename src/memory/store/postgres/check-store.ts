import { visibleFields } from '../sqlite/record-row.ts';
import type { Edges } from './edges.ts';
import { openRow, RECORD_COLUMNS } from './record-rows.ts';
import type { Names } from './schema.ts';
import type { SqlClient, SqlPool } from './sql-client.ts';
import type { Tenants } from './tenants.ts';
import type { Tenant } from '../sealer.ts';
import type { VectorTables } from './vector-tables.ts';
import { damaged, numberOf } from '../row-values.ts';

export interface StoreParts {
  readonly pool: SqlPool;
  readonly names: Names;
  readonly tenants: Tenants;
  readonly edges: Edges;
  readonly vectors: VectorTables | null;
}

/** Rows opened at once. */
const PAGE_ROWS = 500;

/** Opens every row of one snapshot; throws `io` for the first damage. */
export function checkStore({ pool, names, tenants, edges, vectors }: StoreParts): Promise<void> {
  return pool.transaction(async (client) => {
    // Others keep writing: without a snapshot, records could be added between two statements.
    await client.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
    for (const tenant of await tenants.all(client)) {
      await checkRecords(client, names, tenant);
      await edges.check(client, tenant);
    }
    const numMisplaced = (await vectors?.countMisplaced(client)) ?? 0;
    if (numMisplaced > 0) throw damaged(`${numMisplaced} vectors are missing or in another set`);
  });
}

async function checkRecords(client: SqlClient, { table }: Names, tenant: Tenant): Promise<void> {
  const sql = `SELECT ${RECORD_COLUMNS} FROM ${table('record')} AS r
    WHERE r.tenant = $1 AND r."row" > $2 ORDER BY r."row" LIMIT ${PAGE_ROWS}`;
  for (let last = 0; ;) {
    const { rows } = await client.query(sql, [tenant.no, last]);
    if (rows.length === 0) return;
    for (const row of rows) {
      const { record, head } = openRow(row, tenant, '');
      if (visibleFields(record.fields, tenant.sealer) !== head.fieldsText) {
        throw damaged(`the record ${record.id} has other searchable fields than sealed ones`);
      }
      last = numberOf(row['row']);
    }
  }
}
