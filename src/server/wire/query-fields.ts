import { refusal } from '../errors.ts';
import { invalid, type JsonSchema } from './fields.ts';

/** One option in the query of a URL: how it is read, and what the documentation says of it. */
export interface QueryField<T> {
  readonly read: (text: string, name: string) => T;
  readonly schema: JsonSchema;
}

export type QueryFields<T> = { readonly [K in keyof T]: QueryField<T[K]> };

/** Reads the query of a URL; what is not given becomes null. Unknown options are refused, and such as are given twice: one of them would be ignored. */
export function readQuery<T>(request: Request, fields: QueryFields<T>): { readonly [K in keyof T]: T[K] | null } {
  const query = new URL(request.url).searchParams;
  const read: Record<string, unknown> = Object.fromEntries(Object.keys(fields).map((name) => [name, null]));
  for (const [name, text] of query) {
    const shown = name.slice(0, 80);
    if (!Object.hasOwn(fields, name)) {
      throw refusal(400, 'unknown_parameter', `unknown option '${shown}' in the query`, { param: shown });
    }
    if (read[name] !== null) throw invalid(name, 'given once', text);
    read[name] = fields[name as keyof T].read(text, name);
  }
  return read as { readonly [K in keyof T]: T[K] | null };
}

export function queryInteger(minimum: number, maximum: number): QueryField<number> {
  return {
    schema: { type: 'integer', minimum, maximum },
    read(text, name) {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      if (value >= minimum && value <= maximum) return value;
      throw invalid(name, `an integer from ${minimum} to ${maximum}`, text);
    },
  };
}

export function queryText(maxLength: number): QueryField<string> {
  return {
    schema: { type: 'string', minLength: 1, maxLength },
    read(text, name) {
      if (text.length >= 1 && text.length <= maxLength) return text;
      throw invalid(name, `a string of 1 to ${maxLength} characters`, `${text.length} characters`);
    },
  };
}

export const queryBoolean: QueryField<boolean> = {
  schema: { type: 'boolean' },
  read(text, name) {
    if (text === 'true' || text === 'false') return text === 'true';
    throw invalid(name, 'true or false', text);
  },
};
