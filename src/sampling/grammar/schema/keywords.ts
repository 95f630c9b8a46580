import type { KeywordReader, SchemaReader } from './reader-types.ts';
import { LOGIC_KEYWORDS } from './keywords-logic.ts';
import { VALUE_KEYWORDS } from './keywords-values.ts';
import { ARRAY_KEYWORDS } from './keywords-arrays.ts';
import { OBJECT_KEYWORDS } from './keywords-objects.ts';
import type { SchemaPlace, JsonObject } from './schema-document.ts';
import type { Formula } from './formula-types.ts';

export const KEYWORDS: ReadonlyMap<string, KeywordReader> = new Map([
  ...LOGIC_KEYWORDS,
  ...VALUE_KEYWORDS,
  ...ARRAY_KEYWORDS,
  ...OBJECT_KEYWORDS,
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
