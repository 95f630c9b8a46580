export type JsonSchema = Readonly<Record<string, unknown>>;

/** A kind of value: what it accepts, and how messages and documentation describe it. */
export interface Kind<T> {
  /** `an integer from 1 to 10`. */
  readonly expected: string;
  readonly schema: JsonSchema;
  is(value: unknown): value is T;
}

export const numberKind = (minimum: number, maximum: number): Kind<number> => ({
  expected: `a number from ${minimum} to ${maximum}`,
  schema: { type: 'number', minimum, maximum },
  is: (value): value is number => typeof value === 'number' && value >= minimum && value <= maximum,
});

export const integerKind = (minimum: number, maximum: number): Kind<number> => ({
  expected: `an integer from ${minimum} to ${maximum}`,
  schema: { type: 'integer', minimum, maximum },
  is: (value): value is number =>
    Number.isSafeInteger(value) && (value as number) >= minimum && (value as number) <= maximum,
});

export const BOOLEAN: Kind<boolean> = {
  expected: 'true or false',
  schema: { type: 'boolean' },
  is: (value): value is boolean => typeof value === 'boolean',
};

export const choiceKind = <const T extends string>(choices: readonly T[]): Kind<T> => ({
  expected: `one of ${choices.join(', ')}`,
  schema: { type: 'string', enum: choices },
  is: (value): value is T => (choices as readonly unknown[]).includes(value),
});

export const OBJECT: Kind<Readonly<Record<string, unknown>>> = {
  expected: 'an object',
  schema: { type: 'object' },
  is: (value): value is Readonly<Record<string, unknown>> =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
};

/** Text that matches a pattern. */
export const textKind = (expected: string, pattern: string): Kind<string> => ({
  expected,
  schema: { type: 'string', pattern },
  is: (value): value is string => typeof value === 'string' && new RegExp(pattern, 'u').test(value),
});

export const listKind = <T>(item: Kind<T>): Kind<readonly T[]> => ({
  expected: `a list; each item must be ${item.expected}`,
  schema: { type: 'array', items: item.schema },
  is: (value): value is T[] => Array.isArray(value) && value.every(item.is),
});

/** An object with any keys that match the pattern. */
export const mapKind = <T>(expected: string, keyPattern: string, item: Kind<T>): Kind<Readonly<Record<string, T>>> => ({
  expected,
  schema: { type: 'object', propertyNames: { pattern: keyPattern }, additionalProperties: item.schema },
  is: (value): value is Record<string, T> =>
    OBJECT.is(value) &&
    Object.entries(value).every(([key, one]) => new RegExp(keyPattern, 'u').test(key) && item.is(one)),
});
