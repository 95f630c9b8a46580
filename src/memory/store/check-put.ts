import { RuvLLMError } from '../../core/errors.ts';
import { isUuid } from '../../core/uuid.ts';
import type { FieldRegistry } from '../fields.ts';
import type { FieldValue, PutRecord, RecordKind } from '../types.ts';
import { toJsonText } from './check-json.ts';
import { checkInteger, checkKeys, refuse } from '../../core/options.ts';
import { checkKind, checkList, checkTenant, checkText, checkTime, checkVector } from './checks.ts';
import { STORE_LIMITS } from './limits.ts';

/** A checked copy of a record. */
export interface CheckedPut {
  readonly id: string;
  readonly tenant: string;
  readonly kind: RecordKind;
  readonly createdMs: number | null;
  readonly expiresMs: number | null;
  readonly fields: Readonly<Record<string, FieldValue>>;
  readonly bodyText: string;
  readonly vector: Float32Array | null;
  readonly space: string | null;
  readonly ifVersion: number | null;
}

/** `version` and `updatedMs` are allowed for records that were read before, and ignored. */
const KEYS = ['id', 'tenant', 'kind', 'createdMs', 'updatedMs', 'expiresMs', 'version', 'fields', 'body', 'vector', 'space', 'ifVersion']; // prettier-ignore

export function checkPuts(records: readonly PutRecord[], registry: FieldRegistry): CheckedPut[] {
  checkList(records, 'records', 1, STORE_LIMITS.itemsPerCall);
  const seen = new Set<string>();
  let sizeBytes = 0;
  return records.map((record) => {
    const checked = checkPut(record, registry);
    const key = `${checked.id} ${checked.tenant}`;
    if (seen.has(key)) refuse(`the record ${checked.id} occurs twice in one call`, 'records');
    seen.add(key);
    sizeBytes += checked.bodyText.length + (checked.vector?.byteLength ?? 0);
    if (sizeBytes > STORE_LIMITS.callBytes) refuse(`one call has more than ${STORE_LIMITS.callBytes} bytes`, 'records');
    return checked;
  });
}

function checkPut(record: PutRecord, registry: FieldRegistry): CheckedPut {
  checkKeys(record, 'record', KEYS);
  checkId(record.id);
  const kind = checkKind(record.kind);
  if ((record.vector === null) !== (record.space === null)) {
    refuse('vector and space must both be given, or both be null', record.vector === null ? 'vector' : 'space');
  }
  const max = Number.MAX_SAFE_INTEGER;
  return {
    id: record.id,
    tenant: checkTenant(record.tenant),
    kind,
    createdMs: record.createdMs === undefined ? null : checkTime(record.createdMs, 'createdMs'),
    expiresMs: record.expiresMs === null ? null : checkTime(record.expiresMs, 'expiresMs'),
    fields: checkFields(record.fields, kind, registry),
    bodyText: toJsonText(record.body, 'body'),
    vector: record.vector === null ? null : checkVector(record.vector, 'vector'),
    space: record.space === null ? null : checkText(record.space, 'space', STORE_LIMITS.spaceBytes),
    ifVersion: record.ifVersion === undefined ? null : checkInteger(record.ifVersion, 'ifVersion', 0, max),
  };
}

/** Throws `conflict` when the stored record is not the one that the put expects. */
export function checkReplaces(
  { id, kind, ifVersion }: CheckedPut,
  old: { readonly version: number; readonly kind: RecordKind } | undefined,
): void {
  const version = old?.version ?? 0;
  if (ifVersion !== null && ifVersion !== version) {
    throw new RuvLLMError('conflict', `the record ${id} has version ${version}, expected ${ifVersion}`, {
      data: { id, version, expectedVersion: ifVersion },
      isRetryable: true,
    });
  }
  if (old === undefined || old.kind === kind) return;
  throw new RuvLLMError('conflict', `the record ${id} has the kind ${old.kind}, not ${kind}`, { data: { id } });
}

export function checkId(id: string): string {
  if (!isUuid(id)) refuse('an id must be a UUID in lower case', 'id');
  return id;
}

export function checkIds(ids: readonly string[]): readonly string[] {
  checkList(ids, 'ids', 0, STORE_LIMITS.idsPerCall).forEach(checkId);
  return ids;
}

function checkFields(fields: PutRecord['fields'], kind: RecordKind, registry: FieldRegistry): PutRecord['fields'] {
  checkKeys(fields, `the fields of ${kind}`, Object.keys(registry[kind]));
  const entries = Object.entries(fields);
  if (entries.length > STORE_LIMITS.fields) refuse(`a record has ${entries.length} fields, at most ${STORE_LIMITS.fields}`, 'fields'); // prettier-ignore
  for (const [name, value] of entries) checkFieldValue(value, name, registry[kind][name]!.type);
  return Object.fromEntries(entries);
}

/** Null is allowed for each type. */
export function checkFieldValue(value: FieldValue, name: string, type: 'number' | 'boolean' | 'word'): FieldValue {
  if (value === null) return value;
  if (type === 'word') {
    if (typeof value !== 'string') refuse(`the field "${name}" must be a text, got ${typeof value}`, name);
    // May be empty.
    return value === '' ? value : checkText(value, name, STORE_LIMITS.wordBytes);
  }
  if (typeof value !== type || (type === 'number' && !Number.isFinite(value))) {
    refuse(`the field "${name}" must be a ${type === 'number' ? 'finite number' : type}`, name);
  }
  return Object.is(value, -0) ? 0 : value;
}
