import { refusal } from '../errors.ts';

/** The part of JSON Schema that the documentation of the routes needs. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** One field of a body: how it is read, and what the documentation says of it. */
export interface Field<T> {
  /** Throws a 400 that names the field; never sees `undefined` or `null`. */
  readonly read: (value: unknown, path: string) => T;
  readonly schema: JsonSchema;
}

/** The fields of an object; what is not given becomes null. */
export type Fields<T> = { readonly [K in keyof T]: Field<NonNullable<T[K]>> };

/** Short, and safe for whatever a client sends. */
function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === 'object' ? (value === null ? 'null' : 'an object') : String(value);
}

/** A 400 that says what was expected at `path`, and what was there. */
export function invalid(path: string, expected: string, value: unknown): Error {
  return refusal(400, 'invalid_value', `'${path}' must be ${expected}, got ${show(value)}`, { param: path });
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Reads an object field by field. Unknown names are refused: served without them, a request would pretend to have been
 * understood. `null` counts as not given, as in the API this one follows.
 */
export function readFields<T>(
  value: unknown,
  fields: Fields<T>,
  { path = '', ignored = [] }: { path?: string; ignored?: readonly string[] } = {},
): { readonly [K in keyof T]: NonNullable<T[K]> | null } {
  if (!isObject(value)) throw invalid(path === '' ? 'body' : path, 'an object', value);
  const prefix = path === '' ? '' : `${path}.`;
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(fields, key) || ignored.includes(key)) continue;
    const name = `${prefix}${key.slice(0, 80)}`;
    throw refusal(400, 'unknown_parameter', `unknown field '${name}'`, { param: name });
  }
  const read: Record<string, unknown> = {};
  for (const key of Object.keys(fields) as (keyof T & string)[]) {
    const given = Object.hasOwn(value, key) ? value[key] : undefined;
    read[key] = given === undefined || given === null ? null : fields[key].read(given, `${prefix}${key}`);
  }
  return read as { readonly [K in keyof T]: NonNullable<T[K]> | null };
}

/** The value, or a 400 that it is missing. */
export function required<T>(value: T | null, path: string): T {
  if (value === null) throw refusal(400, 'missing_required_parameter', `'${path}' is required`, { param: path });
  return value;
}

/** The schema of an object with these fields. */
export function schemaOf(
  fields: Fields<never> | Readonly<Record<string, Field<unknown>>>,
  names: string[],
): JsonSchema {
  const properties = Object.fromEntries(
    Object.entries(fields as Record<string, Field<unknown>>).map(([name, { schema }]) => [name, schema]),
  );
  return { type: 'object', additionalProperties: false, properties, required: names };
}

export function numberField(minimum: number, maximum: number): Field<number> {
  return {
    schema: { type: 'number', minimum, maximum },
    read(value, path) {
      if (typeof value !== 'number' || !(value >= minimum && value <= maximum)) {
        throw invalid(path, `a number from ${minimum} to ${maximum}`, value);
      }
      return value;
    },
  };
}

export function integerField(minimum: number, maximum: number): Field<number> {
  return {
    schema: { type: 'integer', minimum, maximum },
    read(value, path) {
      if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < minimum || value > maximum) {
        throw invalid(path, `an integer from ${minimum} to ${maximum}`, value);
      }
      return value;
    },
  };
}

/** As many as a limit of the server allows: more is understood, and refused by the limit. */
export function countField(minimum: number, maximum: number): Field<number> {
  const { schema, read } = integerField(minimum, maximum);
  return {
    schema,
    read(value, path) {
      if (typeof value !== 'number' || !Number.isSafeInteger(value) || value <= maximum) return read(value, path);
      throw refusal(422, 'limit_exceeded', `'${path}' is ${value}, at most ${maximum} are allowed`, { param: path });
    },
  };
}

export const booleanField: Field<boolean> = {
  schema: { type: 'boolean' },
  read(value, path) {
    if (typeof value !== 'boolean') throw invalid(path, 'true or false', value);
    return value;
  },
};

export function stringField(maxLength: number, minLength = 0): Field<string> {
  return {
    schema: { type: 'string', minLength, maxLength },
    read(value, path) {
      if (typeof value !== 'string') throw invalid(path, 'a string', value);
      if (value.length >= minLength && value.length <= maxLength) return value;
      throw invalid(path, `a string of ${minLength} to ${maxLength} characters`, `${value.length} characters`);
    },
  };
}

export function choiceField<const T extends string>(choices: readonly T[]): Field<T> {
  return {
    schema: { type: 'string', enum: choices },
    read(value, path) {
      if (!(choices as readonly unknown[]).includes(value)) throw invalid(path, `one of ${choices.join(', ')}`, value);
      return value as T;
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
        const message = `'${path}' has ${value.length} items, at most ${maxItems} are allowed`;
        throw refusal(422, 'limit_exceeded', message, { param: path });
      }
      return value.map((one, index) => item.read(one, `${path}[${index}]`));
    },
  };
}

/** An object that is handed on as it is; whoever uses it checks what is inside. */
export const objectField: Field<Readonly<Record<string, unknown>>> = {
  schema: { type: 'object' },
  read(value, path) {
    if (!isObject(value)) throw invalid(path, 'an object', value);
    return value;
  },
};
