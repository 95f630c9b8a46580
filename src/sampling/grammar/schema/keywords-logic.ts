import type { Formula } from './formula-types.ts';
import { readList, readText } from './read-values.ts';
import type { SchemaPlace } from './schema-document.ts';
import type { KeywordReader, SchemaReader } from './reader-types.ts';

export function branches(reader: SchemaReader, value: unknown, place: SchemaPlace, keyword: string): Formula[] {
  const list = readList(value, place, keyword);
  return list.map((_, i) => reader.schemaAt(reader.document.child(place, keyword, i)));
}

export function exactlyOne({ formulas }: SchemaReader, parts: readonly Formula[]): Formula {
  const cases = parts.map((part, i) => formulas.and(parts.map((other, j) => (i === j ? part : formulas.not(other)))));
  return formulas.or(cases);
}

const reference =
  (keyword: '$ref' | '$dynamicRef'): KeywordReader =>
  (reader, value, place) =>
    reader.schemaAt(reader.document.resolve(place, keyword, readText(value, place, keyword)));

export const LOGIC_KEYWORDS: readonly (readonly [string, KeywordReader])[] = [
  ['$ref', reference('$ref')],
  ['$dynamicRef', reference('$dynamicRef')],
  ['allOf', (reader, value, place) => reader.formulas.and(branches(reader, value, place, 'allOf'))],
  ['anyOf', (reader, value, place) => reader.formulas.or(branches(reader, value, place, 'anyOf'))],
  ['oneOf', (reader, value, place) => exactlyOne(reader, branches(reader, value, place, 'oneOf'))],
  ['not', (reader, _, place) => reader.formulas.not(reader.schemaAt(reader.document.child(place, 'not')))],
  [
    'if',
    (reader, _, place, schema) => {
      const { formulas } = reader;
      const branch = (keyword: string): Formula =>
        Object.hasOwn(schema, keyword) ? reader.schemaAt(reader.document.child(place, keyword)) : formulas.always;
      const [test, yes, no] = [branch('if'), branch('then'), branch('else')];
      if (yes === formulas.always && no === formulas.always) return formulas.always;
      return formulas.or([formulas.and([test, yes]), formulas.and([formulas.not(test), no])]);
    },
  ],
];
