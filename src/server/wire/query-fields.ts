import { refusal } from '../errors.ts';
import { booleanField, type Field, type Fields, integerField, invalid, stringField, type Values } from './fields.ts';

/** Reads the query of a URL; absent options are null. Rejects unknown options, and repeated ones, of which one would be ignored. */
export function readQuery<F extends Fields>(request: Request, fields: F): Values<F> {
  const query = new URL(request.url).searchParams;
  const read: Record<string, unknown> = Object.fromEntries(Object.keys(fields).map((name) => [name, null]));
  for (const [name, text] of query) {
    const shown = name.slice(0, 80);
    if (!Object.hasOwn(fields, name)) {
      throw refusal(400, 'unknown_parameter', `unknown option '${shown}' in the query`, { param: shown });
    }
    if (read[name] !== null) throw invalid(name, 'given once', text);
    read[name] = fields[name]!.read(text, name);
  }
  return read as Values<F>;
}

/** A field whose value is parsed from text; text that does not parse is rejected. */
const fromText = <T>({ schema, read }: Field<T>, parse: (text: string) => unknown): Field<T> => ({
  schema,
  read: (text, name) => read(parse(text as string) ?? text, name),
});

export const queryInteger = (minimum: number, maximum: number): Field<number> =>
  fromText(integerField(minimum, maximum), (text) => (/^\d{1,15}$/.test(text) ? Number(text) : null));
export const queryText = (maxLength: number): Field<string> => stringField(maxLength, 1);
export const queryBoolean: Field<boolean> = fromText(booleanField, (text) => ({ true: true, false: false })[text]);
