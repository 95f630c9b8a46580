import type { FormatAssertion } from '../types.ts';
import type { Dfa } from '../automata/automaton.ts';
import { malformed, unsupported } from '../limits.ts';
import type { Formula, Formulas } from './formula-types.ts';
import type { SchemaDocument, SchemaPlace } from './schema-document.ts';
import { isObject, own } from './schema-document.ts';
import { UNEVALUATED_KEYWORDS, readUnevaluated } from './unevaluated.ts';
import type { SchemaReader } from './reader-types.ts';
import { KEYWORDS, readKeywords } from './keywords.ts';

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

export interface SchemaReaderOptions {
  readonly formulas: Formulas;
  readonly document: SchemaDocument;
  readonly isStrict: boolean;
  readonly assertFormats: FormatAssertion;
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
