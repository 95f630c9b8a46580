import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { packFloats, unpackFloats } from '../common/float-packing.ts';
import type { JsonValue } from '../types.ts';

/** Milliseconds a `Date` can hold. */
const MAX_TIME_MS = 8.64e15;
const MAX_JSON_DEPTH = 16;
const MAX_DIM = 8192;

/** Well-formed text of at most `max` UTF-16 units. */
export function text(max: number, min = 0): z.ZodType<string> {
  return z
    .string()
    .min(min)
    .max(max)
    .refine((value) => value.isWellFormed(), 'has a lone surrogate');
}

export const name = text(256, 1);
export const uuid = z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, 'is not a UUID in lower case');
export const timeMs = z.int().min(0).max(MAX_TIME_MS);
export const unit = z.number().min(0).max(1);
export const count = z.int().min(0);
export const durationMs = z.number().min(0).max(MAX_TIME_MS);

/** A loop, because `every` boxes each of the thousands of values in a request. */
function areFinite(values: Float32Array): boolean {
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i]!)) return false;
  return true;
}

/** At most `max` finite floats; stored packed. */
export function floats(max: number): z.ZodType<Float32Array> {
  return z.custom<Float32Array>(
    (value) => value instanceof Float32Array && value.length <= max && areFinite(value),
    `must be a Float32Array of at most ${max} finite values`,
  );
}

export const embedding = floats(MAX_DIM);
/** The fingerprint of the embedder that made a vector. */
export const space = name;

/** Whether it is JSON of at most `maxValues` values; stops there, so that millions of values are refused fast. */
function isPlainJson(root: unknown, maxValues: number): boolean {
  let numLeft = maxValues;
  const isPlain = (value: unknown, depth: number): boolean => {
    if (numLeft-- <= 0) return false;
    if (value === null || typeof value === 'boolean') return true;
    if (typeof value === 'number') return Number.isFinite(value);
    if (typeof value === 'string') return value.length <= maxValues && value.isWellFormed();
    if (typeof value !== 'object' || depth === 0) return false;
    if (Array.isArray(value)) return value.length <= numLeft && value.every((item) => isPlain(item, depth - 1));
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return false;
    const object = value as Readonly<Record<string, unknown>>;
    for (const key in object) {
      // `$` marks packed floats in a body; `__proto__` would not survive parsing.
      if (key.startsWith('$') || key === '__proto__' || !key.isWellFormed()) return false;
      if (!isPlain(object[key], depth - 1)) return false;
    }
    return true;
  };
  return isPlain(root, MAX_JSON_DEPTH);
}

/** The caller's own object, at most `maxBytes` characters of JSON. */
export function metadata(maxBytes: number): z.ZodType<Readonly<Record<string, JsonValue>>> {
  return z.custom<Readonly<Record<string, JsonValue>>>(
    (value) =>
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      // Each value takes at least one character.
      isPlainJson(value, maxBytes) &&
      JSON.stringify(value).length <= maxBytes,
    `must be plain JSON of at most ${maxBytes} characters and ${MAX_JSON_DEPTH} levels, no key starting with $`,
  );
}

/** For `refine`: a vector comes with its space, or both are null. */
export const hasSpace = (key: string) =>
  [
    (value: Readonly<Record<string, unknown>>) => (value[key] === null) === (value['space'] === null),
    `${key} and space must both be given, or both be null`,
  ] as const;

/** Checks a value against its schema; the error names the path to the first problem. */
export function parseWith<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown].map(String).join('.').slice(0, 200);
  throw new RuvLLMError('invalid_option', `${what}${path === '' ? '' : `: "${path}"`}: ${issue.message}`, {
    data: { option: path, numIssues: result.error.issues.length },
  });
}

/** The same for stored values: a mismatch is the store's fault (`io`), not the caller's. */
export function parseStored<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  try {
    return parseWith(schema, value, what);
  } catch (error) {
    throw new RuvLLMError('io', `${what} in the store does not match its schema: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** A stored object without keys that only older versions wrote. */
export function withoutKeys(value: unknown, keys: readonly string[]): object {
  if (typeof value !== 'object' || value === null) return {};
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));
}

/** A checked value as JSON; floats as `{ $f32: base64 }`. */
export function toBody(value: unknown): JsonValue {
  if (value instanceof Float32Array) return { $f32: packFloats(value) };
  if (Array.isArray(value)) return value.map(toBody);
  if (value === null || typeof value !== 'object') return value as JsonValue;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toBody(item)]));
}

export function fromBody(value: JsonValue): unknown {
  if (Array.isArray(value)) return value.map(fromBody);
  if (value === null || typeof value !== 'object') return value;
  const object = value as Readonly<Record<string, JsonValue>>;
  if (typeof object['$f32'] === 'string') return unpackFloats(object['$f32']);
  return Object.fromEntries(Object.entries(object).map(([key, item]) => [key, fromBody(item)]));
}
