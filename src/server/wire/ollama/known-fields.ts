import { type Field, type Fields, isObject, readFields, type Values } from '../fields.ts';

/** Reads the known fields of an object and adds the names of the others to `ignored`, as Ollama ignores them. */
export function readKnownFields<F extends Fields>(
  value: unknown,
  fields: F,
  { path = '', ignored }: { path?: string; ignored: string[] },
): Values<F> {
  if (!isObject(value)) return readFields(value, fields, { path });
  const entries = Object.entries(value).filter(([key]) => {
    if (Object.hasOwn(fields, key)) return true;
    ignored.push((path === '' ? key : `${path}.${key}`).slice(0, 80));
    return false;
  });
  return readFields(Object.fromEntries(entries), fields, { path });
}

/** Any value; its reader validates it. */
export const anyField: Field<unknown> = { schema: {}, read: (value) => value };

/** The header that names ignored fields; header values are ASCII. */
export function withIgnoredFields(ignored: readonly string[], response: Response): Response {
  const names = ignored.filter((name) => /^[\x21-\x7e]+$/.test(name));
  if (names.length > 0) response.headers.set('x-ignored-fields', [...new Set(names)].join(', ').slice(0, 2000));
  return response;
}
