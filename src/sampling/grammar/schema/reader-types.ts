import type { FormatAssertion } from '../types.ts';
import type { Formulas, Formula } from './formula-types.ts';
import type { SchemaDocument, SchemaPlace, JsonObject } from './schema-document.ts';
import type { Dfa } from '../automata/automaton.ts';

export interface SchemaReader {
  readonly formulas: Formulas;
  readonly document: SchemaDocument;
  readonly assertFormats: FormatAssertion;
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
