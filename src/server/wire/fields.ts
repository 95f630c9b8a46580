import { BOOLEAN, choiceKind, integerKind, type JsonSchema, type Kind, numberKind, OBJECT } from '../../core/kinds.ts';
import { showValue } from '../../core/show-value.ts';
import { refusal } from '../errors.ts';

export type { JsonSchema };
export const isObject = OBJECT.is;

/** A field of a body: its parser and its schema. */
export interface Field<T> {
  /** Throws a 400 that names the field; never sees `undefined` or `null`. */
  readonly read: (value: unknown, path: string) => T;
  readonly schema: JsonSchema;
  readonly isRequired?: boolean;
}

interface RequiredField<T> extends Field<T> {
  readonly isRequired: true;
}

export type Fields = Readonly<Record<string, Field<unknown>>>;

/** The values of fields; absent ones are null. */
export type Values<F extends Fields> = {
  readonly [K in keyof F]: ReturnType<F[K]['read']> | (F[K] extends RequiredField<unknown> ? never : null);
};

/** A 400 with the expected and the actual value at `path`. */
export function invalid(path: string, expected: string, value: unknown): Error {
  return refusal(400, 'invalid_value', `'${path}' must be ${expected}, got ${showValue(value)}`, { param: path });
}

/** Names of unknown fields, while `collectIgnored` runs; null: they are rejected. */
let ignored: Set<string> | null = null;

/** More names would not fit into a header. */
const MAX_IGNORED = 64;

/** Runs a synchronous reader with unknown fields ignored, and returns their names. */
export function collectIgnored<T>(read: () => T): { readonly value: T; readonly names: readonly string[] } {
  const outer = ignored;
  const names = (ignored = new Set());
  try {
    return { value: read(), names: [...names] };
  } finally {
    ignored = outer;
  }
}

export function rejectField(name: string): never {
  throw refusal(400, 'unknown_parameter', `unknown field '${name}'`, { param: name });
}

/** Ignores a field by name, or rejects it where unknown fields are rejected. */
export function ignoreField(name: string): void {
  if (ignored === null) rejectField(name);
  if (ignored.size < MAX_IGNORED) ignored.add(name);
}

/**
 * Reads an object field by field. Unknown fields are rejected, or within `collectIgnored` left out by name. `null` counts
 * as absent, as in OpenAI's API.
 */
export function readFields<F extends Fields>(
  value: unknown,
  fields: F,
  { path = '' }: { path?: string } = {},
): Values<F> {
  if (!isObject(value)) throw invalid(path === '' ? 'body' : path, 'an object', value);
  const prefix = path === '' ? '' : `${path}.`;
  for (const key of Object.keys(value)) {
    if (!Object.hasOwn(fields, key)) ignoreField(`${prefix}${key.slice(0, 80)}`);
  }
  const { absent, requiredKeys } = planOf(fields);
  const values: Record<string, unknown> = { ...absent };
  for (const key of Object.keys(value)) {
    const item = value[key] ?? null;
    if (item !== null && Object.hasOwn(fields, key)) values[key] = fields[key]!.read(item, `${prefix}${key}`);
  }
  // After reading all: an invalid value is reported before a missing one.
  for (const key of requiredKeys) required(values[key], `${prefix}${key}`);
  return values as Values<F>;
}

interface ReadingPlan {
  /** All fields, null. */
  readonly absent: Readonly<Record<string, null>>;
  readonly requiredKeys: readonly string[];
}

const plans = new WeakMap<Fields, ReadingPlan>();

function planOf(fields: Fields): ReadingPlan {
  let plan = plans.get(fields);
  if (plan === undefined) {
    const keys = Object.keys(fields);
    plan = {
      // Parsed, because an object that is built key by key becomes a hash table, which is slow to copy.
      absent: JSON.parse(`{${keys.map((key) => `${JSON.stringify(key)}:null`).join()}}`) as Record<string, null>,
      requiredKeys: keys.filter((key) => fields[key]!.isRequired === true),
    };
    plans.set(fields, plan);
  }
  return plan;
}

/** Fields that depend on the server's limits, built once for each set of limits. */
export function fieldsByLimits<L extends object, F extends Fields>(build: (limits: L) => F): (limits: L) => F {
  const built = new WeakMap<L, F>();
  return (limits) => {
    let fields = built.get(limits);
    if (fields === undefined) built.set(limits, (fields = build(limits)));
    return fields;
  };
}

/** A 400 that names the missing field. */
export function missing(path: string): Error {
  return refusal(400, 'missing_required_parameter', `'${path}' is required`, { param: path });
}

/** The value; throws a 400 if it is missing. */
export function required<T>(value: T | null, path: string): T {
  if (value === null) throw missing(path);
  return value;
}

const IGNORED: Field<null> = { schema: { description: 'accepted; has no effect' }, read: () => null };

/** Fields of the original API that are accepted and have no effect; the documentation says so. */
export const ignoredFields = <const K extends string>(...names: K[]): Readonly<Record<K, Field<null>>> =>
  Object.fromEntries(names.map((name) => [name, IGNORED])) as Record<K, Field<null>>;

export const requiredField = <T>(field: Field<T>): RequiredField<T> => ({ ...field, isRequired: true });

/** The schema of an object with these fields. */
export function schemaOf(fields: Fields): JsonSchema {
  const entries = Object.entries(fields);
  const properties = Object.fromEntries(entries.map(([name, { schema }]) => [name, schema]));
  const names = entries.filter(([, { isRequired }]) => isRequired === true).map(([name]) => name);
  return { type: 'object', additionalProperties: false, properties, required: names };
}

function kindField<T>({ is, expected, schema }: Kind<T>): Field<T> {
  return {
    schema,
    read(value, path) {
      if (is(value)) return value;
      throw invalid(path, expected, value);
    },
  };
}

export const numberField = (min: number, max: number): Field<number> => kindField(numberKind(min, max));
export const integerField = (min: number, max: number): Field<number> => kindField(integerKind(min, max));
export const booleanField: Field<boolean> = kindField(BOOLEAN);
export const choiceField = <const T extends string>(choices: readonly T[]): Field<T> => kindField(choiceKind(choices));
/** Any object; its consumer validates the contents. */
export const objectField: Field<Readonly<Record<string, unknown>>> = kindField(OBJECT);

/** A number up to a limit of the server; more is a 422. */
export function countField(minimum: number, maximum: number): Field<number> {
  const { schema, read } = integerField(minimum, maximum);
  return {
    schema,
    read(value, path) {
      if (typeof value !== 'number' || !Number.isSafeInteger(value) || value <= maximum) return read(value, path);
      throw refusal(422, 'limit_exceeded', `'${path}' is ${value}; the limit is ${maximum}`, { param: path });
    },
  };
}

export function stringField(maxLength: number, minLength = 0): Field<string> {
  return {
    schema: { type: 'string', minLength, maxLength },
    read(value, path) {
      if (typeof value !== 'string') throw invalid(path, 'a string', value);
      if (value.length >= minLength && value.length <= maxLength) return value;
      const message = `'${path}' must be a string of ${minLength} to ${maxLength} characters, got ${value.length}`;
      throw refusal(400, 'invalid_value', message, { param: path });
    },
  };
}

export function listField<T>(item: Field<T>, maxItems: number, minItems = 0): Field<readonly T[]> {
  return {
    schema: { type: 'array', items: item.schema, minItems, maxItems },
    read(value, path) {
      if (!Array.isArray(value)) throw invalid(path, 'a list', value);
      if (value.length < minItems) throw invalid(path, `a list of ${minItems} or more`, value);
      if (value.length > maxItems) {
        const message = `'${path}' has ${value.length} items; the limit is ${maxItems}`;
        throw refusal(422, 'limit_exceeded', message, { param: path });
      }
      return value.map((element, index) => item.read(element, `${path}[${index}]`));
    },
  };
}
