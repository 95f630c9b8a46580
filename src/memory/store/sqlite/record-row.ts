import { RuvLLMError } from '../../../core/errors.ts';
import { formatUuid } from '../../../core/uuid.ts';
import { RECORD_KINDS, type FieldValue, type JsonValue, type MemoryRecord, type RecordKind } from '../../types.ts';
import type { CheckedPut } from '../check-put.ts';
import type { TenantSealer } from '../sealer.ts';
import { bytesOf, numberOf, numberOrNull, textOf, type SqlRow } from './sql-database.ts';

/** What a row says in the clear; all of it is associated data of what it has sealed, so no row can stand in for another. */
export interface RowHead {
  readonly tenantId: string;
  readonly id: string;
  readonly kind: number;
  readonly createdMs: number;
  readonly updatedMs: number;
  readonly expiresMs: number | null;
  readonly version: number;
  readonly seq: number;
  readonly vectorSet: number | null;
  readonly fieldsText: string;
}

export interface OpenedRow {
  readonly row: number;
  readonly head: RowHead;
  readonly record: MemoryRecord;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const FLOAT_BYTES = 4;
const LENGTH_BYTES = 4;

/** Kinds are stored as numbers from 1: those of `RECORD_KINDS` keep their place for ever. */
export const kindNumber = (kind: RecordKind): number => RECORD_KINDS.indexOf(kind) + 1;

export function kindOf(number: number): RecordKind {
  const kind = RECORD_KINDS[number - 1];
  if (kind === undefined) throw damaged(`a row has the kind ${number}`);
  return kind;
}

export function damaged(message: string): RuvLLMError {
  return new RuvLLMError('io', `the memory is damaged: ${message}`, { data: { isDamaged: true } });
}

/** The fields as they may be seen: numbers and booleans as they are, words as keyed hashes, sorted and without nulls. */
export function visibleFields(fields: Readonly<Record<string, FieldValue>>, sealer: TenantSealer): string {
  const entries = Object.entries(fields).filter(([, value]) => value !== null);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(
    Object.fromEntries(
      entries.map(([name, value]) => [name, typeof value === 'string' ? wordHash(sealer, name, value) : value]),
    ),
  );
}

export function wordHash(sealer: TenantSealer, field: string, word: string): string {
  return sealer.nameOf(`field ${field}`, word);
}

function associatedData(head: RowHead): Uint8Array {
  const { tenantId, id, kind, createdMs, updatedMs, expiresMs, version, seq, vectorSet, fieldsText } = head;
  const parts = ['record', tenantId, id, kind, createdMs, updatedMs, expiresMs, version, seq, vectorSet, fieldsText];
  return encoder.encode(JSON.stringify(parts));
}

/** Plain: length of the JSON text (u32 little-endian), the text, the floats of the vector (little-endian). */
export function sealRecord(put: CheckedPut, head: RowHead, sealer: TenantSealer): Uint8Array {
  const { fields, bodyText, space, vector } = put;
  const text = encoder.encode(
    `{"fields":${JSON.stringify(fields)},"space":${JSON.stringify(space)},"body":${bodyText}}`,
  );
  const numFloats = vector?.length ?? 0;
  const plain = new Uint8Array(LENGTH_BYTES + text.length + numFloats * FLOAT_BYTES);
  const view = new DataView(plain.buffer);
  view.setUint32(0, text.length, true);
  plain.set(text, LENGTH_BYTES);
  const start = LENGTH_BYTES + text.length;
  for (let i = 0; i < numFloats; i++) view.setFloat32(start + i * FLOAT_BYTES, vector![i]!, true);
  return sealer.seal(associatedData(head), plain);
}

export const RECORD_COLUMNS =
  'row, tenant, id, kind, created_ms, updated_ms, expires_ms, version, seq, vector_set, fields, sealed';

export function headOf(row: SqlRow, tenantId: string): RowHead {
  return {
    tenantId,
    id: formatUuid(bytesOf(row['id'])),
    kind: numberOf(row['kind']),
    createdMs: numberOf(row['created_ms']),
    updatedMs: numberOf(row['updated_ms']),
    expiresMs: numberOrNull(row['expires_ms']),
    version: numberOf(row['version']),
    seq: numberOf(row['seq']),
    vectorSet: numberOrNull(row['vector_set']),
    fieldsText: textOf(row['fields']),
  };
}

/** The record of a row; throws `io` when anything in it is not as it was written. */
export function openRow(row: SqlRow, tenantId: string, tenant: string, sealer: TenantSealer): OpenedRow {
  const head = headOf(row, tenantId);
  return { row: numberOf(row['row']), head, record: openRecord(head, bytesOf(row['sealed']), tenant, sealer) };
}

export function openRecord(head: RowHead, sealed: Uint8Array, tenant: string, sealer: TenantSealer): MemoryRecord {
  const plain = sealer.unseal(associatedData(head), sealed);
  if (plain === null) throw damaged(`the record ${head.id} of version ${head.version} does not open`);
  const view = new DataView(plain.buffer, plain.byteOffset, plain.byteLength);
  const start = LENGTH_BYTES + view.getUint32(0, true);
  const { fields, space, body } = JSON.parse(decoder.decode(plain.subarray(LENGTH_BYTES, start))) as {
    fields: Record<string, FieldValue>;
    space: string | null;
    body: JsonValue;
  };
  const { id, createdMs, updatedMs, expiresMs, version } = head;
  return {
    id,
    tenant,
    kind: kindOf(head.kind),
    createdMs,
    updatedMs,
    expiresMs,
    version,
    fields,
    body,
    vector: space === null ? null : readFloats(view, start),
    space,
  };
}

function readFloats(view: DataView, start: number): Float32Array {
  const floats = new Float32Array((view.byteLength - start) / FLOAT_BYTES);
  for (let i = 0; i < floats.length; i++) floats[i] = view.getFloat32(start + i * FLOAT_BYTES, true);
  return floats;
}
