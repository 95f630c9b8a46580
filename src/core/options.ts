import { RuvLLMError } from './errors.ts';

/** How one option is checked: returns the value to use, or throws with the reason. */
export type OptionReader<T> = (value: unknown, name: string) => T;

export type OptionReaders<T> = { [K in keyof T]-?: OptionReader<T[K]> };

/** Short, and safe for whatever a caller may hand in: `String()` throws for an object without prototype. */
function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  if (Array.isArray(value)) return `a list of ${value.length} items`;
  return (typeof value === 'object' && value !== null) || typeof value === 'function' ? typeof value : String(value);
}

/** Throws `invalid_option` for one option. */
export function refuse(message: string, option: string): never {
  throw new RuvLLMError('invalid_option', message, { data: { option } });
}

function fail(name: string, expected: string, value: unknown): never {
  refuse(`option "${name}" must be ${expected}, got ${show(value)}`, name);
}

/** Refuses unknown keys: a misspelt option must not be ignored. */
export function checkKeys(value: unknown, what: string, known: readonly string[]): void {
  if (typeof value !== 'object' || value === null) fail(what, 'an object', value);
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) refuse(`${what}: unknown option "${key.slice(0, 80)}" (known: ${known.join(', ')})`, key);
  }
}

export function checkInteger(value: unknown, name: string, min: number, max: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    fail(name, `an integer from ${min} to ${max}`, value);
  }
  return value;
}

export function checkBoolean(value: unknown, name: string): boolean {
  if (typeof value !== 'boolean') fail(name, 'true or false', value);
  return value;
}

export function checkChoice<T extends string>(value: unknown, name: string, choices: readonly T[]): T {
  if (!(choices as readonly unknown[]).includes(value)) fail(name, `one of ${choices.join(', ')}`, value);
  return value as T;
}

/**
 * Validates an options object once, at the border: unknown keys are refused, defaults filled in, the result frozen.
 * Nothing is optional below this call.
 */
export function resolveOptions<T extends object>(
  what: string,
  given: object | undefined,
  readers: OptionReaders<T>,
): Readonly<T> {
  const input = (given ?? {}) as Record<string, unknown>;
  checkKeys(given === undefined ? {} : given, what, Object.keys(readers));
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
  return (value, name) => (value === undefined ? defaultValue : checkInteger(value, name, min, max));
}

export function booleanOption(defaultValue: boolean): OptionReader<boolean> {
  return (value, name) => (value === undefined ? defaultValue : checkBoolean(value, name));
}

export function stringOption<D extends string | null>(defaultValue: D): OptionReader<string | D> {
  return (value, name) => {
    if (value === undefined) return defaultValue;
    if (typeof value !== 'string') fail(name, 'a string', value);
    return value;
  };
}

export function choiceOption<const T extends string>(defaultValue: T, choices: readonly T[]): OptionReader<T> {
  return (value, name) => (value === undefined ? defaultValue : checkChoice(value, name, choices));
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

/** An `undefined` that stays `null`, or whatever `reader` says of a given value. */
export function optional<T>(reader: OptionReader<T>): OptionReader<T | null> {
  return (value, name) => (value === undefined || value === null ? null : reader(value, name));
}

/** A value that is passed through unchecked because its type is checked where it is used (signals, callbacks). */
export function instanceOption<T>(expected: string, is: (value: unknown) => value is T): OptionReader<T> {
  return (value, name) => (is(value) ? value : fail(name, expected, value));
}
