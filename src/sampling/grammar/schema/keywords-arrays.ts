import { TYPE } from './formula-types.ts';
import type { Formula } from './formula-types.ts';
import { readCount, readList } from './read-values.ts';
import type { JsonObject, SchemaPlace } from './schema-document.ts';
import { own } from './schema-document.ts';
import type { KeywordReader, SchemaReader } from './reader-types.ts';

/** A schema for each of the first items. */
function readPrefix(reader: SchemaReader, value: unknown, place: SchemaPlace, keyword: string): Formula {
  const { formulas, document } = reader;
  const parts = readList(value, place, keyword).map((_, index) =>
    formulas.whenTyped({ kind: 'item', index, goal: reader.schemaAt(document.child(place, keyword, index)) }),
  );
  return formulas.and(parts);
}

/** The index of the first item that no list of schemas covers. */
export function prefixLength(schema: JsonObject): number {
  const items = own(schema, 'items');
  const prefix = Array.isArray(items) ? items : own(schema, 'prefixItems');
  return Array.isArray(prefix) ? prefix.length : 0;
}

function readRest(reader: SchemaReader, place: SchemaPlace, schema: JsonObject, keyword: string): Formula {
  const goal = reader.schemaAt(reader.document.child(place, keyword));
  return reader.formulas.whenTyped({ kind: 'items', from: prefixLength(schema), goal });
}

export const ARRAY_KEYWORDS: readonly (readonly [string, KeywordReader])[] = [
  [
    'prefixItems',
    (reader, value, place) =>
      reader.document.isDraft7 ? reader.formulas.always : readPrefix(reader, value, place, 'prefixItems'),
  ],
  [
    'items',
    (reader, value, place, schema) =>
      Array.isArray(value) ? readPrefix(reader, value, place, 'items') : readRest(reader, place, schema, 'items'),
  ],
  [
    'additionalItems',
    (reader, _, place, schema) =>
      Array.isArray(own(schema, 'items')) ? readRest(reader, place, schema, 'additionalItems') : reader.formulas.always,
  ],
  [
    'contains',
    (reader, _, place, schema) => {
      const count = (keyword: string, fallback: number): number => {
        const given = reader.document.isDraft7 ? undefined : own(schema, keyword);
        return given === undefined ? fallback : readCount(given, place, keyword);
      };
      const goal = reader.schemaAt(reader.document.child(place, 'contains'));
      const [min, max] = [count('minContains', 1), count('maxContains', Infinity)];
      if (min > max) return reader.formulas.not(reader.formulas.types(TYPE.array));
      return reader.formulas.whenTyped({ kind: 'contains', from: 0, goal, min, max });
    },
  ],
  [
    'minItems',
    ({ formulas }, value, place) =>
      formulas.whenTyped({ kind: 'item-count', min: readCount(value, place, 'minItems'), max: Infinity }),
  ],
  [
    'maxItems',
    ({ formulas }, value, place) =>
      formulas.whenTyped({ kind: 'item-count', min: 0, max: readCount(value, place, 'maxItems') }),
  ],
  [
    'uniqueItems',
    ({ formulas }, value, place) =>
      value === true
        ? formulas.whenTyped({ kind: 'unique', pointer: `${place.pointer}/uniqueItems` })
        : formulas.always,
  ],
];
