import { type Schema, Validator } from '@cfworker/json-schema';
import { describe, expect, test } from 'vitest';
import { countTexts, listTexts, measureDistances, shortestText, utf8Cost } from '../automata/dfa-measures.ts';
import { dfaOfLengths, dfaOfTexts, dfaStep } from '../automata/dfa.ts';
import { compileGrammar } from '../compile.ts';
import { createFuel, DEFAULT_LIMITS } from '../limits.ts';
import type { CompiledGrammar, GrammarState } from '../types.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const NUMBERS = [0, 1, 2, 3, 4, 6, 10, -1, -2, 0.5, 1.5, 2.25];
const TEXTS = ['', 'a', 'b', 'ab', 'ba', 'abc', 'é', '😀', '"', 'a b'];
const SCALARS = [null, true, false, 1, 2, 'a'];
const ARRAYS: unknown[][] = [
  [],
  ...SCALARS.map((one) => [one]),
  ...[1, 2, 'a'].flatMap((one) => [1, 2, 'a'].map((two) => [one, two])),
  ...[1, 2].flatMap((one) => [1, 2].flatMap((two) => [1, 2].map((three) => [one, two, three]))),
  [[]],
  [[1], [1]],
  [[1], [2]],
  [{}],
  [{ a: 1 }, { a: 1 }],
  [{ a: 1 }, { a: 2 }],
  [1, 2, 3, 4],
];
const OBJECTS: object[] = [
  {},
  ...[1, 2, 'a', null].flatMap((value) => [{ a: value }, { b: value }, { ab: value }]),
  { a: 1, b: 1 },
  { b: 1, a: 1 },
  { a: 1, b: 'a' },
  { a: 1, c: 1 },
  { a: 1, b: 1, c: 1 },
  { c: { a: 1 } },
  { a: [1] },
];
const VALUES: unknown[] = [null, true, false, ...NUMBERS, ...TEXTS, ...ARRAYS, ...OBJECTS];

/** Null: some byte is refused. */
function walk(grammar: CompiledGrammar, bytes: Uint8Array): GrammarState | null {
  let state: GrammarState | null = grammar.start;
  for (const byte of bytes) state = state && grammar.step(state, byte);
  return state;
}

const SCHEMAS: unknown[] = [
  {},
  { type: 'number', minimum: 1, maximum: 3 },
  { type: 'number', exclusiveMinimum: 1, exclusiveMaximum: 3 },
  { type: 'integer', minimum: -1, exclusiveMaximum: 4 },
  { multipleOf: 0.5, type: 'number' },
  { type: 'integer', multipleOf: 2, not: { multipleOf: 3 } },
  { type: 'string', minLength: 1, maxLength: 2 },
  { type: 'string', pattern: '^a' },
  { type: 'string', pattern: 'b', minLength: 2 },
  { type: 'string', not: { const: 'a' } },
  { enum: [1, 'a', null, [1], { a: 1 }] },
  { not: { enum: [1, 'a', null] } },
  { const: { a: 1, b: 1 } },
  { type: ['null', 'boolean'] },
  { type: 'array', minItems: 1, maxItems: 2 },
  { type: 'array', items: { type: 'integer' }, minItems: 2 },
  { type: 'array', items: false },
  { type: 'array', prefixItems: [{ const: 1 }, { type: 'integer' }], items: false },
  { type: 'array', prefixItems: [{ const: 1 }], items: { const: 2 }, minItems: 2 },
  { type: 'array', prefixItems: [{ enum: [1, 2] }], minItems: 1, maxItems: 1 },
  { type: 'array', uniqueItems: true },
  { type: 'array', items: { enum: [1, 2] }, uniqueItems: true, minItems: 2 },
  { type: 'array', items: { enum: [1, 2, 'a'] }, uniqueItems: true, maxItems: 1 },
  { type: 'array', contains: { const: 1 } },
  { type: 'array', contains: { const: 1 }, minContains: 2 },
  // The validator needs the default of `minContains` beside `maxContains`.
  { type: 'array', contains: { const: 1 }, minContains: 1, maxContains: 1 },
  { type: 'array', contains: { const: 1 }, minContains: 0, maxContains: 2 },
  { type: 'array', contains: { type: 'string' }, minItems: 2 },
  { type: 'object', required: ['a'] },
  { type: 'object', required: ['a', 'b'] },
  { type: 'object', properties: { a: { const: 1 } }, additionalProperties: false },
  { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'string' } }, required: ['b'] },
  { type: 'object', properties: { a: false } },
  { type: 'object', minProperties: 1, maxProperties: 1 },
  { type: 'object', minProperties: 2 },
  { type: 'object', maxProperties: 2, required: ['c'] },
  { type: 'object', additionalProperties: { type: 'integer' } },
  { type: 'object', patternProperties: { '^a': { type: 'integer' } } },
  { type: 'object', patternProperties: { b$: { const: 1 } }, additionalProperties: false },
  { type: 'object', propertyNames: { maxLength: 1 } },
  { type: 'object', propertyNames: { enum: ['a', 'c'] } },
  { type: 'object', dependentRequired: { a: ['b'] } },
  { type: 'object', dependentSchemas: { a: { required: ['c'] } } },
  {
    anyOf: [
      { type: 'integer', minimum: 2 },
      { type: 'string', maxLength: 1 },
    ],
  },
  { oneOf: [{ type: 'integer' }, { type: 'number', minimum: 2 }] },
  {
    oneOf: [
      { required: ['a'], type: 'object' },
      { required: ['b'], type: 'object' },
    ],
  },
  { allOf: [{ type: 'number', minimum: 1 }, { maximum: 3 }, { not: { const: 2 } }] },
  JSON.parse('{"if": {"type": "integer"}, "then": {"minimum": 2}, "else": {"type": ["string", "null"]}}'),
  JSON.parse('{"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}'),
  { not: { type: ['number', 'string', 'array', 'object'] } },
  { type: 'array', not: { items: { type: 'integer' } } },
  { type: 'object', not: { required: ['a'] } },
  { $ref: '#/$defs/list', $defs: { list: { type: 'array', items: { $ref: '#/$defs/list' } } } },
  { type: 'array', prefixItems: [{ const: 1 }], unevaluatedItems: false },
  { type: 'object', properties: { a: true }, unevaluatedProperties: false },
];

describe('[G5] small values are accepted where an independent validator accepts them', () => {
  test.each(SCHEMAS.map((schema) => [schema]))('%j', (schema) => {
    const grammar = compileGrammar({ type: 'json_schema', schema });
    const validator = new Validator(schema as Schema, '2020-12');
    const isValid = (value: unknown): boolean => validator.validate(value).valid;
    const wrong = VALUES.filter((value) => {
      const state = walk(grammar, encoder.encode(JSON.stringify(value)));
      return (state !== null && grammar.isComplete(state)) !== isValid(value);
    });
    expect(wrong.map((value) => JSON.stringify(value))).toEqual([]);
    // Every beginning of an accepted text ends in a valid value of the promised length. A third of the values is enough.
    for (const value of VALUES.filter(isValid).filter((_, i) => i % 3 === 0)) {
      const bytes = encoder.encode(JSON.stringify(value));
      for (let size = 0; size <= bytes.length; size++) {
        const begun = bytes.subarray(0, size);
        const state = walk(grammar, begun)!;
        const closing = grammar.closing(state, 10_000)!;
        expect(closing.length).toBe(grammar.closingBytes(state));
        const text = decoder.decode(Uint8Array.of(...begun, ...closing));
        expect([text, isValid(JSON.parse(text))]).toEqual([text, true]);
      }
    }
  });
});

describe('measures of automata', () => {
  const fuel = createFuel(DEFAULT_LIMITS);
  const dfa = dfaOfTexts([['ab', 1], ['ac', 1], ['b"', 2], ['c', 1], ['', 2]], fuel); // prettier-ignore
  const isOne = (label: number): boolean => label === 1;

  test('the shortest text from each state', () => {
    const distances = measureDistances(dfa, utf8Cost, fuel, isOne);
    const step = (state: number, code: number): number => dfaStep(dfa, state, code);
    expect([distances.bytes[0], shortestText(distances, 0, step)]).toEqual([1, 'c']);
    const afterA = step(0, 97);
    expect([distances.bytes[afterA], shortestText(distances, afterA, step)]).toEqual([1, 'b']);
    expect(measureDistances(dfa, utf8Cost, fuel).bytes[0]).toBe(0);
    expect(shortestText(measureDistances(dfa, utf8Cost, fuel), 0, step)).toBe('');
    const zero = dfaOfTexts([['\0', 1]], fuel);
    expect(shortestText(measureDistances(zero, utf8Cost, fuel), 0, (q, code) => dfaStep(zero, q, code))).toBe('\0');
    expect(measureDistances(dfaOfTexts([['é', 1]], fuel), utf8Cost, fuel).bytes[0]).toBe(2);
  });

  test('the number of texts, all or with one label', () => {
    expect([countTexts(dfa, fuel)[0], countTexts(dfa, fuel, isOne)[0], countTexts(dfa, fuel, () => false)[0]]).toEqual([5, 3, 0]); // prettier-ignore
    expect([countTexts(dfaOfLengths(0, Infinity, fuel), fuel)[0], countTexts(dfaOfLengths(1, 1, fuel), fuel)[0]]).toEqual([Infinity, 0x110000 - 0x800]); // prettier-ignore
    const digits = dfaOfTexts([..."0123456789"].map((digit) => [digit, 1] as const), fuel); // prettier-ignore
    expect(countTexts(digits, fuel)[0]).toBe(10);
  });

  test('texts in the order of their bytes in JSON, up to a limit', () => {
    expect(listTexts(dfa, 9, fuel)).toEqual(['', 'c', 'ab', 'ac', 'b"']);
    expect(listTexts(dfa, 3, fuel)).toEqual(['', 'c', 'ab']);
    expect([listTexts(dfa, 0, fuel), listTexts(dfa, 9, fuel, isOne), listTexts(dfa, 9, fuel, isOne, dfaStep(dfa, 0, 97))]).toEqual([[], ['c', 'ab', 'ac'], ['b', 'c']]); // prettier-ignore
    expect(listTexts(dfaOfTexts([], fuel), 9, fuel)).toEqual([]);
    expect(listTexts(dfaOfLengths(1, 1, fuel), 2, fuel)).toHaveLength(2);
  });
});
