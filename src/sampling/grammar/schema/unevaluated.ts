import type { Dfa } from '../automata/automaton.ts';
import { unsupported } from '../limits.ts';
import type { Formula } from './formula-types.ts';
import { prefixLength } from './keywords-arrays.ts';
import { exactlyOne } from './keywords-logic.ts';
import { hasProperty, namesOutside, patternsOf } from './keywords-objects.ts';
import { readList, readMap, readText } from './read-values.ts';
import type { JsonObject, SchemaPlace } from './schema-document.ts';
import { isObject, own } from './schema-document.ts';
import type { SchemaReader } from './reader-types.ts';
import { readKeywords } from './keywords.ts';

export const UNEVALUATED_KEYWORDS = ['unevaluatedProperties', 'unevaluatedItems'] as const;

/**
 * One way to satisfy a schema, with what it evaluates. A value that satisfies several ways is covered by the case where all hold; a
 * case that claims less only requires more of the value, so cases may overlap and need not say which ways fail.
 */
interface Case {
  readonly formula: Formula;
  readonly names: readonly string[];
  readonly patterns: readonly Dfa[];
  readonly allNames: boolean;
  readonly numItems: number;
  readonly allItems: boolean;
  /** Items that satisfy one of these are evaluated too. */
  readonly contained: readonly Formula[];
}

// n evaluating branches give 2^n cases.
const MAX_CASES = 256;
const IN_PLACE = new Set(['$ref', '$dynamicRef', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas']);

export function readUnevaluated(reader: SchemaReader, place: SchemaPlace): Formula {
  return reader.formulas.or(casesOf(reader, place, []).map((item) => item.formula));
}

function both(reader: SchemaReader, a: Case, b: Case): Case {
  return {
    formula: reader.formulas.and([a.formula, b.formula]),
    names: [...new Set([...a.names, ...b.names])],
    patterns: [...a.patterns, ...b.patterns],
    allNames: a.allNames || b.allNames,
    numItems: Math.max(a.numItems, b.numItems),
    allItems: a.allItems || b.allItems,
    contained: [...a.contained, ...b.contained],
  };
}

function looksAtNothing(item: Case): boolean {
  return (
    item.names.length + item.patterns.length + item.numItems + item.contained.length === 0 &&
    !item.allNames &&
    !item.allItems
  );
}

function casesOf(reader: SchemaReader, place: SchemaPlace, outer: readonly string[]): Case[] {
  const { formulas, document } = reader;
  const only = (formula: Formula): Case[] => [
    { formula, names: [], patterns: [], allNames: false, numItems: 0, allItems: false, contained: [] },
  ];
  if (!isObject(place.value)) return only(reader.schemaAt(place));
  if (outer.includes(place.pointer)) {
    throw unsupported('unevaluatedProperties', place.pointer, 'a schema that refers to itself in place');
  }
  const schema = place.value;
  const way = [...outer, place.pointer];
  const inner = (...path: (string | number)[]): Case[] => {
    const at = document.child(place, ...path);
    const cases = casesOf(reader, at, way);
    return cases.every(looksAtNothing) ? only(reader.schemaAt(at)) : cases;
  };
  const cross = (a: readonly Case[], b: readonly Case[]): Case[] => {
    if (a.length * b.length > MAX_CASES) {
      throw unsupported('unevaluatedProperties', place.pointer, `more than ${MAX_CASES} combinations of branches`);
    }
    return a.flatMap((left) => b.map((right) => both(reader, left, right)));
  };

  let cases = [{ ...ownCase(reader, schema, place) }];
  for (const keyword of ['$ref', '$dynamicRef'] as const) {
    if (!Object.hasOwn(schema, keyword)) continue;
    const target = document.resolve(place, keyword, readText(schema[keyword], place, keyword));
    const found = casesOf(reader, target, way);
    cases = cross(cases, found.every(looksAtNothing) ? only(reader.schemaAt(target)) : found);
  }
  const list = (keyword: string): Case[][] =>
    readList(own(schema, keyword) ?? [], place, keyword).map((_, i) => inner(keyword, i));
  for (const branch of list('allOf')) cases = cross(cases, branch);
  if (Object.hasOwn(schema, 'anyOf')) cases = cross(cases, anyOfCases(reader, list('anyOf'), only, cross));
  if (Object.hasOwn(schema, 'oneOf')) {
    const plain = list('oneOf').map((_, i) => reader.schemaAt(document.child(place, 'oneOf', i)));
    const one = exactlyOne(reader, plain);
    cases = cross(
      cases,
      list('oneOf').flatMap((branch) => cross(branch, only(one))),
    );
  }
  if (Object.hasOwn(schema, 'if')) {
    const test = reader.schemaAt(document.child(place, 'if'));
    const branch = (keyword: string): Case[] =>
      Object.hasOwn(schema, keyword) ? inner(keyword) : only(formulas.always);
    cases = cross(cases, [...cross(inner('if'), branch('then')), ...cross(only(formulas.not(test)), branch('else'))]);
  }
  for (const name of Object.keys(readMap(own(schema, 'dependentSchemas') ?? {}, place, 'dependentSchemas'))) {
    const has = hasProperty(reader, name);
    cases = cross(cases, [...only(formulas.not(has)), ...cross(only(has), inner('dependentSchemas', name))]);
  }
  return cases.map((item) => close(reader, schema, place, item));
}

/** Every non-empty set of branches may hold. */
function anyOfCases(
  reader: SchemaReader,
  lists: readonly Case[][],
  only: (formula: Formula) => Case[],
  cross: (a: readonly Case[], b: readonly Case[]) => Case[],
): Case[] {
  const { formulas } = reader;
  const plain = lists.map((cases) => formulas.or(cases.map((item) => item.formula)));
  let sets = only(formulas.or(plain));
  for (const cases of lists) {
    if (!cases.every(looksAtNothing)) sets = [...sets, ...cross(sets, cases)];
  }
  return sets;
}

function ownCase(reader: SchemaReader, schema: JsonObject, place: SchemaPlace): Case {
  const has = (keyword: string): boolean => Object.hasOwn(schema, keyword);
  return {
    formula: reader.formulas.and(readKeywords(reader, place, IN_PLACE)),
    names: Object.keys(readMap(own(schema, 'properties') ?? {}, place, 'properties')),
    patterns: patternsOf(reader, schema, place),
    allNames: has('additionalProperties'),
    numItems: prefixLength(schema),
    allItems: has('items') && !Array.isArray(schema.items),
    contained: has('contains') ? [reader.schemaAt(reader.document.child(place, 'contains'))] : [],
  };
}

/** Adds the schema's requirement on everything unevaluated. */
function close(reader: SchemaReader, schema: JsonObject, place: SchemaPlace, item: Case): Case {
  const { formulas, document } = reader;
  const parts = [item.formula];
  let { allNames, allItems } = item;
  if (Object.hasOwn(schema, 'unevaluatedProperties')) {
    const goal = reader.schemaAt(document.child(place, 'unevaluatedProperties'));
    if (!allNames) {
      parts.push(formulas.whenTyped({ kind: 'keys', names: namesOutside(reader, item.names, item.patterns), goal }));
    }
    allNames = true;
  }
  if (Object.hasOwn(schema, 'unevaluatedItems')) {
    const goal = formulas.or([reader.schemaAt(document.child(place, 'unevaluatedItems')), ...item.contained]);
    if (!allItems) parts.push(formulas.whenTyped({ kind: 'items', from: item.numItems, goal }));
    allItems = true;
  }
  return { ...item, formula: formulas.and(parts), allNames, allItems };
}
