import { type JsonSchema, type Kind, OBJECT } from './kinds.ts';
import { didYouMean } from './nearest.ts';

/** The fields of a record in a settings file. */
export type Fields = Readonly<Record<string, { readonly description: string; readonly kind: Kind<unknown> }>>;
export type FieldValues<F extends Fields> = { [K in keyof F]?: F[K]['kind'] extends Kind<infer T> ? T : never };

/** Throws an error about the setting at a path such as `models.coder.context`. */
export type RejectSetting = (path: string, message: string) => never;

/** Reads a section of records by name. */
export function readNamedRecords<F extends Fields>(
  section: unknown,
  path: string,
  nameKind: Kind<string>,
  fields: F,
  reject: RejectSetting,
): readonly { readonly name: string; readonly fields: FieldValues<F> }[] {
  if (!OBJECT.is(section)) return reject(path, `"${path}" must be an object`);
  return Object.entries(section).map(([name, value]) => {
    const at = `${path}.${name}`;
    const isName: boolean = nameKind.is(name);
    if (!isName) return reject(at, `${JSON.stringify(name.slice(0, 80))} is not ${nameKind.expected}`);
    return { name, fields: readFields(value, at, fields, reject) };
  });
}

/** Reads one record; rejects unknown fields. */
export function readFields<F extends Fields>(
  value: unknown,
  path: string,
  fields: F,
  reject: RejectSetting,
): FieldValues<F> {
  if (!OBJECT.is(value)) return reject(path, `"${path}" must be an object`);
  for (const [key, setting] of Object.entries(value)) {
    const at = `${path}.${key}`;
    const field = Object.hasOwn(fields, key) ? fields[key]! : null;
    if (field === null) {
      return reject(
        at,
        `unknown setting ${JSON.stringify(key.slice(0, 80))} in "${path}"${didYouMean(key, Object.keys(fields))}`,
      );
    }
    if (!field.kind.is(setting)) return reject(at, `"${at}" must be ${field.kind.expected}`);
  }
  return value as FieldValues<F>;
}

/** The schema of a record. */
export const objectSchema = (fields: Fields, requiredKeys: readonly string[]): JsonSchema => ({
  type: 'object',
  additionalProperties: false,
  ...(requiredKeys.length === 0 ? {} : { required: requiredKeys }),
  properties: Object.fromEntries(
    Object.entries(fields).map(([key, { description, kind }]) => [
      key,
      { ...(description === '' ? {} : { description }), ...kind.schema },
    ]),
  ),
});
