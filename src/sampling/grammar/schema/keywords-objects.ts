import type { Dfa } from '../automata/automaton.ts';
import { complementDfa, dfaOfTexts, productDfa } from '../automata/dfa.ts';
import type { Formula } from './formula-types.ts';
import { readPattern } from './keywords-values.ts';
import { readCount, readMap, readNames } from './read-values.ts';
import type { JsonObject, SchemaPlace } from './schema-document.ts';
import { own } from './schema-document.ts';
import type { KeywordReader, SchemaReader } from './reader-types.ts';

/** The names covered by neither the list nor a pattern. */
export function namesOutside(reader: SchemaReader, names: readonly string[], patterns: readonly Dfa[]): Dfa {
  const { fuel } = reader.formulas;
  const listed = dfaOfTexts(
    names.filter((name) => name.isWellFormed()).map((name) => [name, 1] as const),
    fuel,
  );
  return productDfa([listed, ...patterns], (labels) => (labels.every((label) => label === 0) ? 1 : 0), fuel);
}

export function patternsOf(reader: SchemaReader, schema: JsonObject, place: SchemaPlace): Dfa[] {
  const map = readMap(own(schema, 'patternProperties') ?? {}, place, 'patternProperties');
  return Object.keys(map).map((pattern) => readPattern(reader, pattern, `${place.pointer}/patternProperties`));
}

/** "Has the property": true only for objects with it. */
export function hasProperty({ formulas }: SchemaReader, name: string): Formula {
  return formulas.atom({ kind: 'required', name });
}

function requireAll(reader: SchemaReader, names: readonly string[]): Formula {
  return reader.formulas.and(names.map((name) => reader.formulas.whenTyped({ kind: 'required', name })));
}

/** For each key of the map: if an object has it, the formula of its value holds. */
function readDependencies(
  reader: SchemaReader,
  value: unknown,
  place: SchemaPlace,
  keyword: string,
  read: (inner: unknown, name: string) => Formula,
): Formula {
  const { formulas } = reader;
  const map = readMap(value, place, keyword);
  const parts = Object.keys(map).map((name) =>
    formulas.or([formulas.not(hasProperty(reader, name)), read(map[name], name)]),
  );
  return formulas.and(parts);
}

export const OBJECT_KEYWORDS: readonly (readonly [string, KeywordReader])[] = [
  [
    'properties',
    (reader, value, place) => {
      const { formulas, document } = reader;
      const parts = Object.keys(readMap(value, place, 'properties')).map((name) =>
        formulas.whenTyped({
          kind: 'property',
          name,
          goal: reader.schemaAt(document.child(place, 'properties', name)),
        }),
      );
      return formulas.and(parts);
    },
  ],
  [
    'patternProperties',
    (reader, value, place, schema) => {
      const { formulas, document } = reader;
      const automata = patternsOf(reader, schema, place);
      const parts = Object.keys(readMap(value, place, 'patternProperties')).map((pattern, i) => {
        const goal = reader.schemaAt(document.child(place, 'patternProperties', pattern));
        return formulas.whenTyped({ kind: 'keys', names: automata[i]!, goal });
      });
      return formulas.and(parts);
    },
  ],
  [
    'additionalProperties',
    (reader, value, place, schema) => {
      const { formulas, document } = reader;
      if (value === true) return formulas.always;
      const listed = Object.keys(readMap(own(schema, 'properties') ?? {}, place, 'properties'));
      const names = namesOutside(reader, listed, patternsOf(reader, schema, place));
      const goal = reader.schemaAt(document.child(place, 'additionalProperties'));
      return formulas.whenTyped({ kind: 'keys', names, goal });
    },
  ],
  [
    'propertyNames',
    (reader, value, place) => {
      const { formulas, document } = reader;
      if (value === true) return formulas.always;
      const texts = reader.textsOf(reader.schemaAt(document.child(place, 'propertyNames')));
      return formulas.whenTyped({ kind: 'keys', names: complementDfa(texts, formulas.fuel), goal: formulas.never });
    },
  ],
  ['required', (reader, value, place) => requireAll(reader, readNames(value, place, 'required'))],
  [
    'minProperties',
    ({ formulas }, value, place) =>
      formulas.whenTyped({ kind: 'key-count', min: readCount(value, place, 'minProperties'), max: Infinity }),
  ],
  [
    'maxProperties',
    ({ formulas }, value, place) =>
      formulas.whenTyped({ kind: 'key-count', min: 0, max: readCount(value, place, 'maxProperties') }),
  ],
  [
    'dependentRequired',
    (reader, value, place) =>
      readDependencies(reader, reader.document.isDraft7 ? {} : value, place, 'dependentRequired', (names) =>
        requireAll(reader, readNames(names, place, 'dependentRequired')),
      ),
  ],
  [
    'dependentSchemas',
    (reader, value, place) =>
      readDependencies(reader, reader.document.isDraft7 ? {} : value, place, 'dependentSchemas', (_, name) =>
        reader.schemaAt(reader.document.child(place, 'dependentSchemas', name)),
      ),
  ],
  [
    'dependencies',
    (reader, value, place) =>
      readDependencies(reader, value, place, 'dependencies', (inner, name) =>
        Array.isArray(inner)
          ? requireAll(reader, readNames(inner, place, 'dependencies'))
          : reader.schemaAt(reader.document.child(place, 'dependencies', name)),
      ),
  ],
];
