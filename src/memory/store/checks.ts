import { RuvLLMError } from '../../core/errors.ts';
import { RECORD_KINDS, type RecordKind } from '../types.ts';
import { MAX_SQUARED_LENGTH, MIN_SQUARED_LENGTH, STORE_LIMITS } from './limits.ts';

/** Refuses with `invalid_option`; nothing that was given is shown beyond its name and sizes, for it may be secret. */
export function refuse(message: string, option: string): never {
  throw new RuvLLMError('invalid_option', message, { data: { option } });
}

export function checkInteger(value: unknown, name: string, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    refuse(`${name} must be an integer from ${min} to ${max}, got ${describe(value)}`, name);
  }
  return value;
}

export function checkFlag(value: unknown, name: string): boolean {
  if (typeof value !== 'boolean') refuse(`${name} must be true or false, got ${describe(value)}`, name);
  return value;
}

export function checkTime(value: unknown, name: string): number {
  return checkInteger(value, name, 0, STORE_LIMITS.timeMs);
}

const describe = (value: unknown): string => (typeof value === 'number' ? String(value) : typeof value);

/** Not empty, valid Unicode and at most `maxBytes` long. */
export function checkText(value: unknown, name: string, maxBytes: number): string {
  if (typeof value !== 'string' || value === '') refuse(`${name} must be a text that is not empty`, name);
  // A character has at most 3 bytes for each unit: short ones need no counting.
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
  if (new Set(value).size !== value.length) refuse('kinds names one kind twice', 'kinds');
  return value;
}

export function checkKind(kind: RecordKind): RecordKind {
  if (!RECORD_KINDS.includes(kind)) refuse(`kind must be one of ${RECORD_KINDS.join(', ')}`, 'kind');
  return kind;
}

export function checkChoice<T extends string>(value: T, name: string, choices: readonly T[]): T {
  if (!choices.includes(value)) refuse(`${name} must be one of ${choices.join(', ')}`, name);
  return value;
}

/** A misspelt condition that is ignored finds too much. */
export function checkKeys(value: object, what: string, known: readonly string[]): void {
  if (typeof value !== 'object' || value === null) refuse(`${what} must be an object`, what);
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) refuse(`${what}: unknown "${key.slice(0, 40)}" (known: ${known.join(', ')})`, key);
  }
}

/** All vectors of one tenant, kind and space have the same length. */
export function checkLength(length: number, expected: number): void {
  if (length !== expected) refuse(`vector has length ${length}, the others of its space have ${expected}`, 'vector');
}

/** A copy, so that nobody changes it later; finite and neither zero nor of absurd length. */
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
    refuse(`${name} has the length ${Math.sqrt(squared)}: it has no direction that could be compared`, name);
  }
  return value.slice();
}
