import { invalidFile, quote } from './failures.ts';
import type { Metadata, MetadataValue } from './types.ts';

function describe(value: MetadataValue): string {
  if (typeof value !== 'object') return typeof value;
  return ArrayBuffer.isView(value) ? value.constructor.name : `array of ${value.length}`;
}

/** Typed lookups in a key/value map; `sourceName` appears in errors. */
export function createMetadata(values: ReadonlyMap<string, MetadataValue>, sourceName = 'metadata'): Metadata {
  /** `convert` returns undefined for a value of the wrong kind. */
  function lookUp<T>(
    key: string,
    defaultValue: T | undefined,
    expected: string,
    convert: (value: MetadataValue) => T | undefined,
  ): T {
    const value = values.get(key);
    if (value === undefined) {
      if (defaultValue !== undefined) return defaultValue;
      invalidFile(`${sourceName}: metadata key ${quote(key)} (${expected}) is missing`, { key });
    }
    const converted = convert(value);
    if (converted === undefined) {
      invalidFile(`${sourceName}: metadata key ${quote(key)} must be ${expected}, got ${describe(value)}`, { key });
    }
    return converted;
  }

  return {
    keys: [...values.keys()],
    get: (key) => values.get(key),
    string: (key, defaultValue) => lookUp(key, defaultValue, 'a string', ofType('string')),
    number: (key, defaultValue) => lookUp(key, defaultValue, 'a number below 2^53', ofType('number')),
    boolean: (key, defaultValue) => lookUp(key, defaultValue, 'true or false', ofType('boolean')),
    strings: (key, defaultValue) => lookUp<readonly string[]>(key, defaultValue, 'a list of strings', toStrings),
    numbers: (key, defaultValue) => lookUp<ArrayLike<number>>(key, defaultValue, 'a list of numbers', toNumbers),
  };
}

function ofType<T extends string | number | boolean>(
  name: 'string' | 'number' | 'boolean',
): (value: MetadataValue) => T | undefined {
  // oxlint-disable-next-line valid-typeof -- the three names are typeof's own
  return (value) => (typeof value === name ? (value as T) : undefined);
}

function toStrings(value: MetadataValue): readonly string[] | undefined {
  // Arrays from a file are homogeneous, so one element is enough.
  return Array.isArray(value) && (value.length === 0 || typeof value[0] === 'string') ? value : undefined;
}

function toNumbers(value: MetadataValue): ArrayLike<number> | undefined {
  if (!ArrayBuffer.isView(value)) return undefined;
  if (!(value instanceof BigUint64Array || value instanceof BigInt64Array)) return value;
  const numbers = Float64Array.from(value, Number);
  return numbers.every(Number.isSafeInteger) ? numbers : undefined;
}
