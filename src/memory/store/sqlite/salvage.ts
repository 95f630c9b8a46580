import { numberOf, textOf } from '../row-values.ts';
import type { TenantKeyRing, TenantSealer } from '../sealer.ts';
import { openRow, RECORD_COLUMNS } from './record-row.ts';
import { inTransaction, type SqlDatabase, type SqlRow, type SqlValue } from './sql-database.ts';

export interface SalvageReport {
  readonly numRecords: number;
  /** Rows that were read but are not as they were written. */
  readonly numDamaged: number;
  /** Tenants left out because their key does not open. */
  readonly droppedTenants: readonly string[];
}

interface SalvageContext {
  /** Damaged. Null: not even its header can be read. */
  readonly source: SqlDatabase | null;
  /** Empty, with the schema. */
  readonly target: SqlDatabase;
  readonly keys: TenantKeyRing;
  /** Records of these tenants are of no use without a key; those of others wait for theirs. */
  readonly isDispensable: (tenantId: string) => boolean;
}

const PAGE_ROWS = 500;
/** Consecutive rows that are tried one by one behind an unreadable page. */
const MAX_GAP = 1_000_000;

const attempt = <T>(run: () => T): T | null => {
  try {
    return run();
  } catch {
    return null;
  }
};

/** Copies every row that can be read and decrypted. Rows of tenants whose key is missing are copied as they are. */
export function salvageRows({ source, target, keys, isDispensable }: SalvageContext): SalvageReport {
  const droppedTenants: string[] = [];
  let numRecords = 0;
  let numDamaged = 0;
  if (source === null) return { numRecords, numDamaged, droppedTenants };
  const sealers = new Map<number, { readonly id: string; readonly sealer: TenantSealer | null }>();
  const put = (table: string, row: SqlRow): void => {
    const names = Object.keys(row);
    const sql = `INSERT OR IGNORE INTO ${table} (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
    target.prepare(sql).run(...(Object.values(row) as SqlValue[]));
  };
  inTransaction(target, () => {
    for (const row of readTenants(source)) {
      const id = textOf(row['id']);
      const sealer = attempt(() => keys.find(id));
      if (sealer === null && isDispensable(id)) {
        droppedTenants.push(id);
        continue;
      }
      sealers.set(numberOf(row['no']), { id, sealer });
      put('tenant', row);
    }
    for (const row of readRows(source, 'vector_set', 'no', 'no, tenant, kind, space, dim')) put('vector_set', row);
    for (const row of readRows(source, 'record', 'row', RECORD_COLUMNS)) {
      const tenant = sealers.get(Number(row['tenant']));
      const isIntact =
        tenant !== undefined &&
        (tenant.sealer === null || attempt(() => openRow(row, tenant.id, '', tenant.sealer!)) !== null);
      if (!isIntact) numDamaged++;
      else {
        put('record', row);
        numRecords++;
        for (const edge of attempt(() => source.prepare('SELECT * FROM edge WHERE source = ?').all(numberOf(row['row']))) ?? []) put('edge', edge); // prettier-ignore
      }
    }
    // An edge needs both of its records.
    target.exec('DELETE FROM edge WHERE target NOT IN (SELECT row FROM record)');
    for (const row of attempt(() => source.prepare('SELECT name, value FROM setting').all()) ?? []) put('setting', row);
  });
  return { numRecords, numDamaged, droppedTenants };
}

/** From the table or, if that cannot be read, from its index. */
function readTenants(source: SqlDatabase): readonly SqlRow[] {
  return (
    attempt(() => source.prepare('SELECT no, id, erasing FROM tenant').all()) ??
    attempt(() => source.prepare('SELECT no, id FROM tenant INDEXED BY sqlite_autoindex_tenant_1').all()) ??
    []
  );
}

/** Rows in order up to the first unreadable one, then those from the end, then each in between. */
function* readRows(source: SqlDatabase, table: string, key: string, columns: string): Generator<SqlRow> {
  const select = (condition: string, ...values: SqlValue[]): readonly SqlRow[] | null =>
    attempt(() => source.prepare(`SELECT ${columns} FROM ${table} WHERE ${condition}`).all(...values));
  let first = 0;
  for (let numRows = PAGE_ROWS; numRows >= 1;) {
    const rows = select(`${key} > ? ORDER BY ${key} LIMIT ${numRows}`, first);
    if (rows === null) numRows = Math.floor(numRows / 8);
    else if (rows.length === 0) return;
    else {
      yield* rows;
      first = numberOf(rows.at(-1)![key]);
    }
  }
  let last = Infinity;
  for (let numRows = PAGE_ROWS; numRows >= 1;) {
    const bound = Math.min(last, Number.MAX_SAFE_INTEGER);
    const rows = select(`${key} < ? AND ${key} > ? ORDER BY ${key} DESC LIMIT ${numRows}`, bound, first);
    if (rows === null) numRows = Math.floor(numRows / 8);
    else if (rows.length === 0) return;
    else {
      yield* rows;
      last = numberOf(rows.at(-1)![key]);
    }
  }
  const counter = attempt(() => source.prepare('SELECT seq FROM sqlite_sequence WHERE name = ?').all(table)[0]);
  const end = Math.min(last, Number(counter?.['seq'] ?? first) + 1, first + MAX_GAP);
  for (let no = first + 1; no < end; no++) yield* select(`${key} = ?`, no) ?? [];
}
