import type { MemoryRecord } from '../../types.ts';
import { openRecord, type RowHead } from '../sqlite/record-row.ts';
import type { SqlRow } from './sql-client.ts';
import type { Tenant } from '../sealer.ts';
import { bytesOf, damaged, numberOf, numberOrNull, textOf } from '../row-values.ts';

export const RECORD_COLUMNS =
  'r."row", r.id, r.kind, r.created_ms, r.updated_ms, r.expires_ms, r.version, r.vector_set, r.fields, r.sealed';

export interface OpenedRow {
  readonly row: number;
  readonly head: RowHead;
  readonly record: MemoryRecord;
}

/** The database reorders JSON; the associated data has sorted names. */
function fieldsTextOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) throw damaged('the fields of a row are not an object');
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(Object.fromEntries(entries));
}

/** Throws `io` for a changed row. */
export function openRow(row: SqlRow, tenant: Tenant, name: string): OpenedRow {
  const head: RowHead = {
    tenantId: tenant.id,
    id: textOf(row['id']),
    kind: numberOf(row['kind']),
    createdMs: numberOf(row['created_ms']),
    updatedMs: numberOf(row['updated_ms']),
    expiresMs: numberOrNull(row['expires_ms']),
    version: numberOf(row['version']),
    seq: 0, // only used for index files
    vectorSet: numberOrNull(row['vector_set']),
    fieldsText: fieldsTextOf(row['fields']),
  };
  return { row: numberOf(row['row']), head, record: openRecord(head, bytesOf(row['sealed']), name, tenant.sealer) };
}
