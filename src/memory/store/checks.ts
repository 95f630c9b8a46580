import { checkChoice, checkInteger, refuse } from '../../core/options.ts';
import { RECORD_KINDS, type RecordKind } from '../types.ts';
import { MAX_SQUARED_LENGTH, MIN_SQUARED_LENGTH, STORE_LIMITS } from './limits.ts';

export function checkTime(value: unknown, name: string): number {
  return checkInteger(value, name, 0, STORE_LIMITS.timeMs);
}

/** Not empty, valid Unicode, at most `maxBytes` long. The error does not show it: it may be secret. */
export function checkText(value: unknown, name: string, maxBytes: number): string {
  if (typeof value !== 'string' || value === '') refuse(`${name} must be a text and not empty`, name);
  // At most 3 bytes per UTF-16 unit: short texts need no encoding.
  if (value.length * 3 > maxBytes && (value.length > maxBytes || new TextEncoder().encode(value).length > maxBytes)) {
    refuse(`${name} has more than ${maxBytes} bytes`, name);
  }
  if (!value.isWellFormed()) refuse(`${name} is not valid Unicode`, name);
  return value;
}

export function checkTenant(value: unknown): string {
  return checkText(value, 'tenant', STORE_LIMITS.tenantBytes);
}

export function checkList<T>(value: readonly T[], name: string, min: number, max: number): readonly T[] {
  if (!Array.isArray(value) || value.length < min || value.length > max) {
    const given = Array.isArray(value) ? `${value.length}` : typeof value;
    refuse(`${name} must be a list of ${min} to ${max}, got ${given}`, name);
  }
  return value;
}

export function checkKinds(value: readonly RecordKind[]): readonly RecordKind[] {
  checkList(value, 'kinds', 1, RECORD_KINDS.length);
  for (const kind of value) checkKind(kind);
  if (new Set(value).size !== value.length) refuse('kinds has one kind twice', 'kinds');
  return value;
}

export const checkKind = (kind: RecordKind): RecordKind => checkChoice(kind, 'kind', RECORD_KINDS);

/** All vectors of one tenant, kind and space have the same length. */
export function checkLength(length: number, expected: number): void {
  if (length !== expected) refuse(`vector has length ${length}, the others of its space have ${expected}`, 'vector');
}

/** Returns a copy, which the caller cannot change later. */
export function checkVector(value: Float32Array, name: string): Float32Array {
  if (!(value instanceof Float32Array)) refuse(`${name} must be a Float32Array`, name);
  checkInteger(value.length, `the length of ${name}`, 1, STORE_LIMITS.vectorLength);
  let squared = 0;
  for (let i = 0; i < value.length; i++) {
    const x = value[i]!;
    if (!Number.isFinite(x)) refuse(`${name}[${i}] is ${x}`, name);
    squared += x * x;
  }
  if (squared < MIN_SQUARED_LENGTH || squared > MAX_SQUARED_LENGTH) {
    refuse(`${name} has the length ${Math.sqrt(squared)}: it cannot be compared`, name);
  }
  return value.slice();
}
