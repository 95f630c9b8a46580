import type { Dfa } from '../automata/dfa.ts';
import { malformed, unsupported } from '../limits.ts';
import type { Formula, Formulas } from './formula.ts';
import { ARRAY_KEYWORDS } from './keywords-arrays.ts';
import { LOGIC_KEYWORDS } from './keywords-logic.ts';
import { OBJECT_KEYWORDS } from './keywords-objects.ts';
import { VALUE_KEYWORDS } from './keywords-values.ts';
import type { JsonObject, SchemaDocument, SchemaPlace } from './schema-document.ts';
import { isObject, own } from './schema-document.ts';
import { UNEVALUATED_KEYWORDS, readUnevaluated } from './unevaluated.ts';

export interface SchemaReader {
  readonly formulas: Formulas;
  readonly document: SchemaDocument;
  readonly assertFormats: boolean;
  /** The goal "satisfies the schema at this place", read lazily. */
  schemaAt(place: SchemaPlace): Formula;
  /** The formula behind a schema reference. */
  read(node: number): Formula;
  placeOf(node: number): SchemaPlace;
  /** The texts that satisfy the formula. */
  textsOf(formula: Formula): Dfa;
}

/** Turns one keyword into a requirement; `schema` is the object that contains it. */
export type KeywordReader = (reader: SchemaReader, value: unknown, place: SchemaPlace, schema: JsonObject) => Formula;

export const KEYWORDS: ReadonlyMap<string, KeywordReader> = new Map([
  ...LOGIC_KEYWORDS,
  ...VALUE_KEYWORDS,
  ...ARRAY_KEYWORDS,
  ...OBJECT_KEYWORDS,
]);

/** Known keywords without a requirement of their own. */
const SILENT_KEYWORDS = new Set([
  ...UNEVALUATED_KEYWORDS,
  '$schema',
  '$id',
  '$anchor',
  '$dynamicAnchor',
  '$comment',
  '$defs',
  '$vocabulary',
  'definitions',
  'title',
  'description',
  'default',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  'contentEncoding',
  'contentMediaType',
  'contentSchema',
  'then',
  'else',
  'minContains',
  'maxContains',
]);

/** The requirements of one schema object, keyword by keyword. */
export function readKeywords(reader: SchemaReader, place: SchemaPlace, skip: ReadonlySet<string>): Formula[] {
  const schema = place.value as JsonObject;
  const parts: Formula[] = [];
  // In draft 7, keywords next to a reference are ignored.
  const names = reader.document.isDraft7 && Object.hasOwn(schema, '$ref') ? ['$ref'] : Object.keys(schema);
  for (const name of names) {
    const keyword = KEYWORDS.get(name);
    if (keyword !== undefined && !skip.has(name)) parts.push(keyword(reader, schema[name], place, schema));
  }
  return parts;
}

export interface SchemaReaderOptions {
  readonly formulas: Formulas;
  readonly document: SchemaDocument;
  readonly isStrict: boolean;
  readonly assertFormats: boolean;
  readonly textsOf: (formula: Formula) => Dfa;
}

const NOTHING: ReadonlySet<string> = new Set();

export function createSchemaReader(options: SchemaReaderOptions): SchemaReader {
  const { formulas, document, isStrict, assertFormats, textsOf } = options;
  const nodes = new Map<string, number>();
  const places: SchemaPlace[] = [];
  const read: (Formula | undefined)[] = [];

  const readPlace = (place: SchemaPlace): Formula => {
    if (place.value === true) return formulas.always;
    if (place.value === false) return formulas.never;
    if (!isObject(place.value)) throw malformed('schema', place.pointer, 'must be an object, true or false');
    const schema = place.value;
    if (isStrict) {
      const unknown = Object.keys(schema).find((name) => !KEYWORDS.has(name) && !SILENT_KEYWORDS.has(name));
      if (unknown !== undefined)
        throw unsupported(unknown, `${place.pointer}/${unknown}`, 'unknown keyword in a strict schema');
    }
    const isOutside = document.isDraft7 || !UNEVALUATED_KEYWORDS.some((name) => own(schema, name) !== undefined);
    if (isOutside) return formulas.and(readKeywords(reader, place, NOTHING));
    return readUnevaluated(reader, place);
  };

  const reader: SchemaReader = {
    formulas,
    document,
    assertFormats,
    textsOf,
    placeOf: (node) => places[node]!,
    schemaAt(place) {
      if (place.value === true) return formulas.always;
      if (place.value === false) return formulas.never;
      let node = nodes.get(place.pointer);
      if (node === undefined) {
        nodes.set(place.pointer, (node = places.length));
        places.push(place);
      }
      return formulas.schema(node);
    },
    read(node) {
      formulas.fuel.burn(1, 'the schema');
      return (read[node] ??= readPlace(places[node]!));
    },
  };
  return reader;
}
