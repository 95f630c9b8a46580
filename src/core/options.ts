import { RuvLLMError } from './errors.ts';
import { BOOLEAN, choiceKind, integerKind, type Kind, numberKind, showValue } from './kinds.ts';

/** How one option is checked: returns the value to use, or throws with the reason. */
export type OptionReader<T> = (value: unknown, name: string) => T;

export type OptionReaders<T> = { [K in keyof T]-?: OptionReader<T[K]> };

function fail(name: string, expected: string, value: unknown): never {
  throw new RuvLLMError('invalid_option', `option "${name}" must be ${expected}, got ${showValue(value)}`, {
    data: { option: name },
  });
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
  if (given !== undefined && (typeof given !== 'object' || given === null)) fail(what, 'an object', given);
  const input = (given ?? {}) as Record<string, unknown>;
  for (const key of Object.keys(input)) {
    if (!Object.hasOwn(readers, key)) {
      const known = Object.keys(readers).join(', ');
      throw new RuvLLMError('invalid_option', `${what}: unknown option "${key}" (known: ${known})`, {
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

/** A value of a kind; `undefined` becomes the default. */
const kindOption =
  <T, D>(kind: Pick<Kind<T>, 'expected' | 'is'>, defaultValue: D): OptionReader<T | D> =>
  (value, name) =>
    value === undefined ? defaultValue : kind.is(value) ? value : fail(name, kind.expected, value);

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

/** An `undefined` that stays `null`, or whatever `reader` says of a given value. */
export function optional<T>(reader: OptionReader<T>): OptionReader<T | null> {
  return (value, name) => (value === undefined || value === null ? null : reader(value, name));
}

/** A value that is passed through unchecked because its type is checked where it is used (signals, callbacks). */
export function instanceOption<T>(expected: string, is: (value: unknown) => value is T): OptionReader<T> {
  return (value, name) => (is(value) ? value : fail(name, expected, value));
}
