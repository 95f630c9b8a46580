import { RuvLLMError } from '../core/errors.ts';

/** Limits of a value, across all levels. */
export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
  /** UTF-16 units of all strings and keys. */
  readonly maxChars: number;
}

/** Rejects values that are not plain JSON or exceed the bounds; iterative, so depth is harmless. */
export function requirePlainJson(value: unknown, option: string, bounds: JsonBounds): void {
  const fail = (reason: string): never => {
    throw new RuvLLMError('invalid_option', `option "${option}" ${reason}`, { data: { option } });
  };
  let [numValues, numChars] = [0, 0];
  const open: { value: unknown; depth: number }[] = [{ value, depth: 1 }];
  const addChars = (length: number): void => {
    numChars += length;
    if (numChars > bounds.maxChars) fail(`has more than ${bounds.maxChars} characters`);
  };
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value: one, depth } = next;
    if (++numValues > bounds.maxValues) fail(`has more than ${bounds.maxValues} values`);
    if (typeof one === 'string') addChars(one.length);
    else if (typeof one === 'number' && !Number.isFinite(one)) fail(`holds ${one}, which is not JSON`);
    else if (typeof one === 'object' && one !== null) {
      if (depth > bounds.maxDepth) fail(`is nested deeper than ${bounds.maxDepth}`);
      if (!isPlain(one)) fail('holds an instance of a class; only plain JSON data is accepted');
      const entries = Array.isArray(one) ? [...one.entries()] : Object.entries(one);
      if (numValues + open.length + entries.length > bounds.maxValues) fail(`has more than ${bounds.maxValues} values`);
      for (const [key, inner] of entries) {
        if (typeof key === 'string') addChars(key.length);
        open.push({ value: inner as unknown, depth: depth + 1 });
      }
    } else if (!['number', 'boolean'].includes(typeof one) && one !== null) fail(`holds a ${typeof one}`);
  }
}

function isPlain(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
