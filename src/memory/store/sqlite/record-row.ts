import { formatUuid, formatUuidDigits } from '../../../core/uuid.ts';
import { RECORD_KINDS, type FieldValue, type JsonValue, type MemoryRecord, type RecordKind } from '../../types.ts';
import type { CheckedPut } from '../check-put.ts';
import type { TenantSealer } from '../sealer.ts';
import type { SqlRow, SqlValue } from './sql-database.ts';
import { bytesOf, damaged, numberOf, numberOrNull, textOf } from '../row-values.ts';

/** The visible part of a row. It is the associated data of the sealed part, so no row can stand in for another. */
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
const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Kinds are stored as numbers from 1: the order of `RECORD_KINDS` must not change. */
export const kindNumber = (kind: RecordKind): number => RECORD_KINDS.indexOf(kind) + 1;

export function kindOf(number: number): RecordKind {
  const kind = RECORD_KINDS[number - 1];
  if (kind === undefined) throw damaged(`a row has the kind ${number}`);
  return kind;
}

/** The visible fields: words as keyed hashes, sorted, without nulls. */
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

/** In UTF-8, at most. */
const BYTES_PER_UNIT = 3;
/** Reused: a search opens many rows, and garbage means pauses. */
let scratch = new Uint8Array(2048);

/** Valid until the next call. */
function encode(text: string): Uint8Array {
  if (text.length * BYTES_PER_UNIT > scratch.length) scratch = new Uint8Array(2 * text.length * BYTES_PER_UNIT);
  return scratch.subarray(0, encoder.encodeInto(text, scratch).written);
}

function associatedData(head: RowHead): Uint8Array {
  const { tenantId, id, kind, createdMs, updatedMs, expiresMs, version, seq, vectorSet, fieldsText } = head;
  const parts = ['record', tenantId, id, kind, createdMs, updatedMs, expiresMs, version, seq, vectorSet, fieldsText];
  return encode(JSON.stringify(parts));
}

/** For plain texts; a longer one gets its own buffer. */
const plainScratch = new Uint8Array(16 << 10);

/** Plain: length of the JSON text (u32 little-endian), the text, the floats of the vector (little-endian). */
export function sealRecord(put: CheckedPut, head: RowHead, sealer: TenantSealer): Uint8Array {
  const { fields, bodyText, space, vector } = put;
  const text = `{"fields":${JSON.stringify(fields)},"space":${JSON.stringify(space)},"body":${bodyText}}`;
  const numFloats = vector?.length ?? 0;
  const maxBytes = LENGTH_BYTES + text.length * BYTES_PER_UNIT + numFloats * FLOAT_BYTES;
  const plain = maxBytes <= plainScratch.length ? plainScratch : new Uint8Array(maxBytes);
  const view = new DataView(plain.buffer);
  const { written } = encoder.encodeInto(text, plain.subarray(LENGTH_BYTES));
  view.setUint32(0, written, true);
  const start = LENGTH_BYTES + written;
  if (IS_LITTLE_ENDIAN && vector !== null) {
    plain.set(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength), start);
  } else for (let i = 0; i < numFloats; i++) view.setFloat32(start + i * FLOAT_BYTES, vector![i]!, true);
  return sealer.seal(associatedData(head), plain.subarray(0, start + numFloats * FLOAT_BYTES));
}

export const RECORD_COLUMNS =
  'row, tenant, id, kind, created_ms, updated_ms, expires_ms, version, seq, vector_set, fields, sealed';

/**
 * For rows of one tenant: the visible part as one text, because a value for each column is most of the cost of reading a row.
 * SQLite writes it like `JSON.stringify`, so it is the end of the associated data.
 */
export const FEW_COLUMNS = `row, lower(hex(id)) AS id, ${jsonArrayOf('kind', 'created_ms', 'updated_ms', 'expires_ms', 'version', 'seq', 'vector_set', 'fields')} AS head, sealed`;

function jsonArrayOf(...columns: readonly string[]): string {
  return `json_array(${columns.join(', ')})`;
}

/** Opens rows read as `FEW_COLUMNS`; throws `io` for a changed one. */
export function createRowOpener(tenantId: string, options: OpenOptions): (row: SqlRow) => OpenedRecord {
  const start = `["record",${JSON.stringify(tenantId)},"`;
  return (row) => {
    const id = formatUuidDigits(textOf(row['id']));
    const text = textOf(row['head']);
    const values = parseHead(text);
    const head = {
      id,
      kind: numberOf(values[0]),
      createdMs: numberOf(values[1]),
      updatedMs: numberOf(values[2]),
      expiresMs: numberOrNull(values[3]),
      version: numberOf(values[4]),
    };
    return openSealed(head, encode(`${start}${id}",${text.slice(1)}`), bytesOf(row['sealed']), options);
  };
}

function parseHead(text: string): readonly SqlValue[] {
  try {
    return JSON.parse(text) as readonly SqlValue[];
  } catch {
    throw damaged(`a row has a head of ${text.length} characters that is not JSON`);
  }
}

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

/** Throws `io` for a changed row. */
export function openRow(row: SqlRow, tenantId: string, tenant: string, sealer: TenantSealer): OpenedRow {
  const head = headOf(row, tenantId);
  return { row: numberOf(row['row']), head, record: openRecord(head, bytesOf(row['sealed']), tenant, sealer) };
}

export function openRecord(head: RowHead, sealed: Uint8Array, tenant: string, sealer: TenantSealer): MemoryRecord {
  return openSealed(head, associatedData(head), sealed, { tenant, sealer, withVector: true }).record;
}

interface OpenedRecord {
  readonly record: MemoryRecord;
  /** Without the vector. */
  readonly textBytes: number;
}

interface OpenOptions {
  readonly tenant: string;
  readonly sealer: TenantSealer;
  readonly withVector: boolean;
}

type ShownHead = Pick<RowHead, 'id' | 'kind' | 'createdMs' | 'updatedMs' | 'expiresMs' | 'version'>;

function openSealed(head: ShownHead, associated: Uint8Array, sealed: Uint8Array, options: OpenOptions): OpenedRecord {
  const { tenant, sealer, withVector } = options;
  const plain = sealer.unseal(associated, sealed);
  if (plain === null) throw damaged(`the record ${head.id} of version ${head.version} does not open`);
  const start = LENGTH_BYTES + ((plain[0]! | (plain[1]! << 8) | (plain[2]! << 16) | (plain[3]! << 24)) >>> 0);
  const { fields, space, body } = JSON.parse(decoder.decode(plain.subarray(LENGTH_BYTES, start))) as {
    fields: Record<string, FieldValue>;
    space: string | null;
    body: JsonValue;
  };
  const { id, createdMs, updatedMs, expiresMs, version } = head;
  const vector = space === null || !withVector ? null : readFloats(plain, start);
  const shown = { id, tenant, kind: kindOf(head.kind), createdMs, updatedMs, expiresMs, version };
  return { record: { ...shown, fields, body, vector, space }, textBytes: start - LENGTH_BYTES };
}

function readFloats(plain: Uint8Array, start: number): Float32Array {
  const view = new DataView(plain.buffer, plain.byteOffset, plain.byteLength);
  const floats = new Float32Array((view.byteLength - start) / FLOAT_BYTES);
  for (let i = 0; i < floats.length; i++) floats[i] = view.getFloat32(start + i * FLOAT_BYTES, true);
  return floats;
}
