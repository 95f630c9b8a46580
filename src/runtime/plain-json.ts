import { RuvLLMError } from '../core/errors.ts';

/** What a value may hold; all levels together. */
export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
  /** UTF-16 units of all texts and names. */
  readonly maxChars: number;
}

/** Refuses what is not plain JSON data, or more of it than the bounds; walks in a loop, so depth cannot hurt. */
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
    else if (typeof one === 'number' && !Number.isFinite(one)) fail(`holds ${one}, which is no JSON`);
    else if (typeof one === 'object' && one !== null) {
      if (depth > bounds.maxDepth) fail(`is nested deeper than ${bounds.maxDepth}`);
      if (!isPlain(one)) fail('holds an object of a class; only plain JSON data is taken');
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
