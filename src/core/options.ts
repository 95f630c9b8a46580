import { RuvLLMError } from './errors.ts';

/** Validates one option: returns the value to use, or throws with the reason. */
export type OptionReader<T> = (value: unknown, name: string) => T;

export type OptionReaders<T> = { [K in keyof T]-?: OptionReader<T[K]> };

/** Short, and safe for any value: `String()` throws for an object without a prototype. */
function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  if (Array.isArray(value)) return `a list of ${value.length} items`;
  return (typeof value === 'object' && value !== null) || typeof value === 'function' ? typeof value : String(value);
}

function fail(name: string, expected: string, value: unknown): never {
  const shown = show(value);
  throw new RuvLLMError('invalid_option', `option "${name}" must be ${expected}, got ${shown}`, {
    data: { option: name },
  });
}

/** Validates an options object once: rejects unknown keys, fills in defaults and freezes the result. */
export function resolveOptions<T extends object>(
  what: string,
  options: object | undefined,
  readers: OptionReaders<T>,
): Readonly<T> {
  if (options !== undefined && (typeof options !== 'object' || options === null)) fail(what, 'an object', options);
  const input = (options ?? {}) as Record<string, unknown>;
  for (const key of Object.keys(input)) {
    if (!Object.hasOwn(readers, key)) {
      const names = Object.keys(readers).join(', ');
      throw new RuvLLMError('invalid_option', `${what}: unknown option "${key}" (known: ${names})`, {
        data: { option: key },
      });
    }
  }
  const resolved: Record<string, unknown> = {};
  for (const key of Object.keys(readers) as (keyof T & string)[]) {
    resolved[key] = readers[key](Object.hasOwn(input, key) ? input[key] : undefined, key);
  }
  return Object.freeze(resolved) as Readonly<T>;
}

/** A finite number in [min, max]; `undefined` becomes the default. */
export function numberOption(defaultValue: number, min: number, max: number): OptionReader<number> {
  return (value, name) => {
    if (value === undefined) return defaultValue;
    if (typeof value !== 'number' || !(value >= min && value <= max))
      fail(name, `a number from ${min} to ${max}`, value);
    return value;
  };
}

/** A safe integer in [min, max]; `undefined` becomes the default. */
export function integerOption(defaultValue: number, min: number, max: number): OptionReader<number> {
  return (value, name) => {
    if (value === undefined) return defaultValue;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
      fail(name, `an integer from ${min} to ${max}`, value);
    }
    return value;
  };
}

export function booleanOption(defaultValue: boolean): OptionReader<boolean> {
  return (value, name) => {
    if (value === undefined) return defaultValue;
    if (typeof value !== 'boolean') fail(name, 'true or false', value);
    return value;
  };
}

export function stringOption<D extends string | null>(defaultValue: D): OptionReader<string | D> {
  return (value, name) => {
    if (value === undefined) return defaultValue;
    if (typeof value !== 'string') fail(name, 'a string', value);
    return value;
  };
}

export function choiceOption<const T extends string>(defaultValue: T, choices: readonly T[]): OptionReader<T> {
  return (value, name) => {
    if (value === undefined) return defaultValue;
    if (!(choices as readonly unknown[]).includes(value)) fail(name, `one of ${choices.join(', ')}`, value);
    return value as T;
  };
}

export function stringListOption(maxItems: number, maxLength: number): OptionReader<readonly string[]> {
  return (value, name) => {
    if (value === undefined) return [];
    if (!Array.isArray(value) || value.length > maxItems) fail(name, `a list of at most ${maxItems} strings`, value);
    for (const item of value as unknown[]) {
      if (typeof item !== 'string' || item.length === 0 || item.length > maxLength) {
        fail(name, `a list of strings of 1 to ${maxLength} characters`, item);
      }
    }
    return Object.freeze([...(value as string[])]);
  };
}

/** Reads `undefined` and `null` as `null`, and other values with `reader`. */
export function optional<T>(reader: OptionReader<T>): OptionReader<T | null> {
  return (value, name) => (value === undefined || value === null ? null : reader(value, name));
}

/** A value that only `is` checks, such as a signal or a callback. */
export function instanceOption<T>(expected: string, is: (value: unknown) => value is T): OptionReader<T> {
  return (value, name) => (is(value) ? value : fail(name, expected, value));
}
