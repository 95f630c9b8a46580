import { RuvLLMError } from './errors.ts';
import { didYouMean } from './nearest.ts';
import { BOOLEAN, choiceKind, integerKind, type Kind, numberKind } from './kinds.ts';
import { showValue } from './show-value.ts';

/** Validates one option: returns the value to use, or throws with the reason. */
export type OptionReader<T> = (value: unknown, name: string) => T;

export type OptionReaders<T> = { [K in keyof T]-?: OptionReader<T[K]> };

/** Throws `invalid_option` for one option. */
export function refuse(message: string, option: string): never {
  throw new RuvLLMError('invalid_option', message, { data: { option } });
}

function fail(name: string, expected: string, value: unknown): never {
  refuse(`option "${name}" must be ${expected}, got ${showValue(value)}`, name);
}

/** Rejects unknown keys: a misspelt option must not be ignored. */
export function checkKeys(value: unknown, what: string, known: readonly string[], path = ''): void {
  if (typeof value !== 'object' || value === null) fail(what, 'an object', value);
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    // Names of other APIs differ in their underscores.
    const hint = didYouMean(key.replaceAll('_', ''), known) || ` (known: ${known.join(', ')})`;
    refuse(`${what}: unknown option "${key.slice(0, 80)}"${hint}`, `${path}${key}`);
  }
}

function check<T>(kind: Pick<Kind<T>, 'expected' | 'is'>, value: unknown, name: string): T {
  return kind.is(value) ? value : fail(name, kind.expected, value);
}

export const checkInteger = (value: unknown, name: string, min: number, max: number): number =>
  check(integerKind(min, max), value, name);

export const checkBoolean = (value: unknown, name: string): boolean => check(BOOLEAN, value, name);

export const checkChoice = <T extends string>(value: unknown, name: string, choices: readonly T[]): T =>
  check(choiceKind(choices), value, name);

/** Validates an options object once: rejects unknown keys, fills in defaults and freezes the result. Errors name `path` and the key. */
export function resolveOptions<T extends object>(
  what: string,
  options: object | undefined,
  readers: OptionReaders<T>,
  { path = '' }: { readonly path?: string } = {},
): Readonly<T> {
  if (options !== undefined) checkKeys(options, what, Object.keys(readers), path);
  const input = (options ?? {}) as Record<string, unknown>;
  const resolved: Record<string, unknown> = {};
  for (const key of Object.keys(readers) as (keyof T & string)[]) {
    resolved[key] = readers[key](Object.hasOwn(input, key) ? input[key] : undefined, `${path}${key}`);
  }
  return Object.freeze(resolved) as Readonly<T>;
}

/** A value of a kind; `undefined` becomes the default. */
const kindOption =
  <T, D>(kind: Pick<Kind<T>, 'expected' | 'is'>, defaultValue: D): OptionReader<T | D> =>
  (value, name) =>
    value === undefined ? defaultValue : check(kind, value, name);

const STRING = { expected: 'a string', is: (value: unknown): value is string => typeof value === 'string' };

/** A finite number in [min, max]. */
export const numberOption = (defaultValue: number, min: number, max: number): OptionReader<number> =>
  kindOption(numberKind(min, max), defaultValue);

/** A safe integer in [min, max]. */
export const integerOption = (defaultValue: number, min: number, max: number): OptionReader<number> =>
  kindOption(integerKind(min, max), defaultValue);

export const booleanOption = (defaultValue: boolean): OptionReader<boolean> => kindOption(BOOLEAN, defaultValue);

export const stringOption = <D extends string | null>(defaultValue: D): OptionReader<string | D> =>
  kindOption(STRING, defaultValue);

export const choiceOption = <const T extends string>(defaultValue: T, choices: readonly T[]): OptionReader<T> =>
  kindOption(choiceKind(choices), defaultValue);

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
