import { RuvLLMError } from '../../core/errors.ts';
import { refuse } from '../../core/options.ts';
import type { JsonValue } from '../types.ts';
import { STORE_LIMITS } from './limits.ts';

const encoder = new TextEncoder();
/** In UTF-8. */
const MAX_UNIT_BYTES = 3;

/**
 * The text of a JSON value, or `invalid_option` with the path to an invalid part: `JSON.stringify` would silently turn NaN into
 * null and drop `undefined`.
 */
export function toJsonText(value: JsonValue, what: string): string {
  let numValues = 0;
  const path: (string | number)[] = [];
  const visit = (item: unknown): void => {
    if (++numValues > STORE_LIMITS.bodyValues)
      refuse(`${what} has more than ${STORE_LIMITS.bodyValues} values`, 'body');
    if (path.length > STORE_LIMITS.bodyDepth) refuse(`${what} is nested deeper than ${STORE_LIMITS.bodyDepth}`, 'body');
    if (item === null || typeof item === 'boolean' || typeof item === 'string') return;
    if (typeof item === 'number') {
      if (!Number.isFinite(item)) refuse(`${what}${placeOf(path)} is ${item}, which JSON cannot hold`, 'body');
    } else if (Array.isArray(item)) {
      for (let i = 0; i < item.length; i++) step(i, item[i]);
    } else if (isPlainObject(item)) {
      for (const key of Object.keys(item)) step(key, item[key]);
    } else refuse(`${what}${placeOf(path)} is ${typeof item}, which JSON cannot hold`, 'body');
  };
  const step = (key: string | number, item: unknown): void => {
    path.push(key);
    visit(item);
    path.pop();
  };
  visit(value);
  const text = JSON.stringify(value);
  const sizeBytes =
    text.length * MAX_UNIT_BYTES <= STORE_LIMITS.bodyBytes || text.length > STORE_LIMITS.bodyBytes
      ? text.length
      : encoder.encode(text).length;
  if (sizeBytes > STORE_LIMITS.bodyBytes) {
    throw new RuvLLMError('invalid_option', `${what} has ${sizeBytes} bytes, at most ${STORE_LIMITS.bodyBytes}`, {
      data: { sizeBytes, limitBytes: STORE_LIMITS.bodyBytes },
    });
  }
  return text;
}

const placeOf = (path: readonly (string | number)[]): string =>
  path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key.slice(0, 40)}`)).join('');

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Objects of another realm (a worker, a test) have another `Object.prototype`, which has no prototype either.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isPlain && typeof (value as { toJSON?: unknown }).toJSON !== 'function';
}
