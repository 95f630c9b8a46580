import { SEARCHED_KINDS } from '../../types.ts';
import type { LexicalSets } from '../lexical-sets.ts';
import type { VectorSets } from '../vector-sets.ts';
import type { Edges } from './edges.ts';
import { openRow, visibleFields } from './record-row.ts';
import { readRowPage } from './row-pages.ts';
import type { SqlDatabase } from './sql-database.ts';
import type { Tenants } from './tenants.ts';
import type { Tenant } from '../sealer.ts';
import { damaged, numberOf, textOf } from '../row-values.ts';

export interface StoreParts {
  readonly database: SqlDatabase;
  readonly tenants: Tenants;
  readonly edges: Edges;
  readonly sets: VectorSets;
  readonly lexicalSets: LexicalSets;
}

/** Rows opened at once. */
const PAGE_ROWS = 500;

/** Checks every page and row; throws `io` for the first damage. */
export async function checkStore({ database, tenants, edges, sets, lexicalSets }: StoreParts): Promise<void> {
  for (const row of database.prepare('PRAGMA integrity_check(20)').all()) {
    const text = String(Object.values(row)[0]);
    if (text !== 'ok') throw damaged(text);
  }
  checkRecords(database, tenants);
  let numEdges = 0;
  for (const row of database.prepare('SELECT no FROM tenant WHERE erasing = 0').all()) {
    const tenant = tenants.byNumber(numberOf(row['no']));
    numEdges += edges.check(tenant);
    checkTexts(tenant, lexicalSets);
  }
  expectCount(database, 'SELECT count(*) AS n FROM edge', numEdges, 'edges connect existing records');
  const lost = 'SELECT count(*) AS n FROM record WHERE tenant NOT IN (SELECT no FROM tenant)';
  expectCount(database, lost, 0, 'records without a tenant');
  await checkVectors(database, sets);
}

function checkRecords(database: SqlDatabase, tenants: Tenants): void {
  const opened = new Map<number, Tenant>();
  for (let last = 0; ;) {
    const rows = readRowPage(database, last, PAGE_ROWS);
    if (rows.length === 0) return;
    for (const row of rows) {
      const no = numberOf(row['tenant']);
      const tenant = opened.get(no) ?? tenants.byNumber(no);
      opened.set(no, tenant);
      const { record, head } = openRow(row, tenant.id, '', tenant.sealer);
      if (visibleFields(record.fields, tenant.sealer) !== head.fieldsText) {
        throw damaged(`the record ${record.id} has other searchable fields than sealed ones`);
      }
      if (numberOf(row['row']) <= last) throw damaged('rows are not in order'); // the loop would not end
      last = numberOf(row['row']);
    }
  }
}

function checkTexts(tenant: Tenant, lexicalSets: LexicalSets): void {
  for (const kind of SEARCHED_KINDS) {
    const index = lexicalSets.compare({ tenant, kind });
    if (index !== null && (index.size !== index.numRows || index.missing > 0)) {
      throw damaged(
        `the lexical index of ${kind} has ${index.size} texts, ${index.missing} of ${index.numRows} are missing`,
      );
    }
  }
}

async function checkVectors(database: SqlDatabase, sets: VectorSets): Promise<void> {
  const statement = database.prepare('SELECT row FROM record WHERE vector_set = ?');
  for (const { no, space } of database.prepare('SELECT no, space FROM vector_set').all()) {
    const rows = statement.all(numberOf(no)).map((row) => numberOf(row['row']));
    const keys = await sets.compare(numberOf(no), rows);
    if (keys !== null && (keys.size !== rows.length || keys.missing > 0)) {
      throw damaged(
        `the index of ${textOf(space)} has ${keys.size} vectors, ${keys.missing} of ${rows.length} are missing`,
      );
    }
  }
}

function expectCount(database: SqlDatabase, sql: string, expected: number, what: string): void {
  const count = numberOf(database.prepare(sql).all()[0]?.['n']);
  if (count !== expected) throw damaged(`${expected} of ${count}: ${what}`);
}
