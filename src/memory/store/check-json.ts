import { RuvLLMError } from '../../core/errors.ts';
import type { JsonValue } from '../types.ts';
import { STORE_LIMITS } from './limits.ts';

const encoder = new TextEncoder();

/**
 * The text of a JSON value, or `invalid_option` with the place of what is none: `JSON.stringify` would make null of NaN and drop
 * `undefined`, and nobody would miss it before it is read again.
 */
export function toJsonText(value: JsonValue, what: string): string {
  let numValues = 0;
  const visit = (item: unknown, path: string, depth: number): void => {
    if (++numValues > STORE_LIMITS.bodyValues) refuse(`${what} has more than ${STORE_LIMITS.bodyValues} values`);
    if (depth > STORE_LIMITS.bodyDepth) refuse(`${what} is nested deeper than ${STORE_LIMITS.bodyDepth}`);
    if (item === null || typeof item === 'boolean' || typeof item === 'string') return;
    if (typeof item === 'number') {
      if (!Number.isFinite(item)) refuse(`${what}${path} is ${item}, which JSON cannot hold`);
    } else if (Array.isArray(item)) {
      for (let i = 0; i < item.length; i++) visit(item[i], `${path}[${i}]`, depth + 1);
    } else if (isPlainObject(item)) {
      for (const key of Object.keys(item)) visit(item[key], `${path}.${key.slice(0, 40)}`, depth + 1);
    } else refuse(`${what}${path} is ${typeof item}, which JSON cannot hold`);
  };
  visit(value, '', 0);
  const text = JSON.stringify(value);
  const sizeBytes = text.length > STORE_LIMITS.bodyBytes ? text.length : encoder.encode(text).length;
  if (sizeBytes > STORE_LIMITS.bodyBytes) {
    throw new RuvLLMError('invalid_option', `${what} has ${sizeBytes} bytes, at most ${STORE_LIMITS.bodyBytes}`, {
      data: { sizeBytes, limitBytes: STORE_LIMITS.bodyBytes },
    });
  }
  return text;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // Objects of another realm (a worker, a test) have another `Object.prototype`: theirs has no prototype either.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isPlain && typeof (value as { toJSON?: unknown }).toJSON !== 'function';
}

function refuse(message: string): never {
  throw new RuvLLMError('invalid_option', message, { data: { option: 'body' } });
}
