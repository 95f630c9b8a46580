import { Validator } from '@cfworker/json-schema';
import type { Schema } from '@cfworker/json-schema';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileGrammar } from './compile.ts';
import type { CompiledGrammar, GrammarState } from './types.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Every allowed byte and the state after it. */
function continuations(grammar: CompiledGrammar, state: GrammarState): [number, GrammarState][] {
  const found: [number, GrammarState][] = [];
  for (let byte = 0; byte < 256; byte++) {
    const next = grammar.step(state, byte);
    if (next !== null) found.push([byte, next]);
  }
  return found;
}

/** Random walk; at every state the shortest completion must give a text that `check` accepts. */
function walk(grammar: CompiledGrammar, choices: readonly number[], check: (text: string) => void): void {
  let state: GrammarState = grammar.start;
  const bytes: number[] = [];
  for (const choice of choices) {
    grammar.beginToken();
    const closing = grammar.closing(state, 100_000);
    expect(closing, `no completion of ${JSON.stringify(String.fromCharCode(...bytes))}`).not.toBeNull();
    check(decoder.decode(Uint8Array.from([...bytes, ...closing!])));
    const next = continuations(grammar, state);
    if (next.length === 0) {
      expect(grammar.isComplete(state)).toBe(true);
      return;
    }
    // Structural bytes are rare among those a string allows: every other choice prefers them.
    const structural = next.filter(([byte]) => '"{}[],:\\0123456789.-etfn'.includes(String.fromCharCode(byte)));
    const list = choice % 2 === 0 && structural.length > 0 ? structural : next;
    const [byte, after] = list[(choice >>> 1) % list.length]!;
    bytes.push(byte);
    state = after;
  }
}

const choices = fc.array(fc.nat({ max: 1 << 20 }), { minLength: 1, maxLength: 40 });
const point = { type: 'object', properties: { x: { type: 'integer' } }, required: ['x'], additionalProperties: false };

const SCHEMAS: Record<string, unknown> = {
  'any value': {},
  'any object': { type: 'object' },
  'closed object': {
    type: 'object',
    properties: {
      name: { type: 'string', minLength: 2, maxLength: 5 },
      age: { type: 'integer', minimum: 0, maximum: 150 },
    },
    required: ['name', 'age'],
    additionalProperties: false,
  },
  numbers: { type: 'number', minimum: -3.5, exclusiveMaximum: 12.25, multipleOf: 0.25 },
  'number with gaps': { type: 'integer', minimum: 90, maximum: 130, not: { multipleOf: 5 } },
  'pattern and length': { type: 'string', pattern: '^[a-cé]+-?[0-9]*$', minLength: 3, maxLength: 6 },
  'enum of everything': { enum: ['a', 'ab', 'é"\\', 12, -0.5, null, true, { k: [1, 'x'] }, []] },
  discriminated: {
    oneOf: [
      { type: 'object', properties: { kind: { const: 'circle' }, r: { type: 'number' } }, required: ['kind', 'r'] },
      { type: 'object', properties: { kind: { const: 'point' }, at: point }, required: ['kind', 'at'] },
    ],
  },
  not: {
    not: { anyOf: [{ type: 'string', minLength: 1 }, { type: ['number', 'boolean', 'null'] }, { type: 'array' }] },
  },
  'negated properties': {
    type: 'object',
    not: { properties: { a: { type: 'string' } }, additionalProperties: { type: 'null' } },
  },
  if: {
    type: 'object',
    properties: { a: { type: 'boolean' } },
    if: { properties: { a: { const: true } }, required: ['a'] },
    ...JSON.parse('{"then":{"required":["b"]}}'),
    else: { maxProperties: 2 },
  },
  contains: {
    type: 'array',
    contains: { const: 1 },
    minContains: 2,
    maxContains: 3,
    maxItems: 5,
    items: { type: 'integer' },
  },
  tuple: { type: 'array', prefixItems: [{ type: 'string' }, { enum: [1, 2] }], items: false, minItems: 1 },
  'unique enum': { type: 'array', items: { enum: ['a', 'b', 'ab'] }, uniqueItems: true, minItems: 2 },
  'unique anything': { type: 'array', uniqueItems: true, minItems: 2 },
  'unique tuple': { type: 'array', prefixItems: [{ enum: [1, 2] }, { const: 1 }], uniqueItems: true, minItems: 2 },
  'pattern properties': {
    type: 'object',
    patternProperties: { '^a': { type: 'integer' }, z$: { maximum: 5 } },
    propertyNames: { pattern: '^[a-z]{1,3}$' },
    minProperties: 2,
    maxProperties: 3,
  },
  'few names': { type: 'object', propertyNames: { enum: ['p', 'q', 'pq'] }, minProperties: 2 },
  dependencies: {
    type: 'object',
    properties: { a: { type: 'null' } },
    additionalProperties: false,
    dependentRequired: { a: ['b'] },
    patternProperties: { '^[bc]$': { type: 'boolean' } },
  },
  recursive: {
    $ref: '#/$defs/node',
    $defs: {
      node: {
        type: 'object',
        properties: { value: { type: 'number' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
        required: ['next'],
        additionalProperties: false,
      },
    },
  },
  unevaluated: {
    type: 'object',
    properties: { a: { type: 'string' } },
    anyOf: [
      { properties: { b: { type: 'integer' } }, required: ['b'] },
      { properties: { c: true }, required: ['c'] },
    ],
    unevaluatedProperties: false,
  },
};

describe('[G1] from every state the shortest completion is a valid instance', () => {
  test.each(Object.entries(SCHEMAS))('%s', (name, schema) => {
    const grammar = compileGrammar({ type: 'json_schema', schema });
    const validator = new Validator(schema as Schema, '2020-12');
    fc.assert(
      fc.property(choices, (list) =>
        walk(grammar, list, (text) => {
          const value: unknown = JSON.parse(text);
          // The oracle divides doubles; the automaton divides decimals.
          expect(validator.validate(value as object).valid, `${name}: ${text}`).toBe(true);
        }),
      ),
      { numRuns: 25, seed: 7 },
    );
  });
});

test('[G2] the number of closing bytes is the length of the closing text', () => {
  for (const [name, schema] of Object.entries(SCHEMAS)) {
    if (name.startsWith('unique')) continue;
    const grammar = compileGrammar({ type: 'json_schema', schema });
    fc.assert(
      fc.property(choices, (list) => {
        let state: GrammarState = grammar.start;
        for (const choice of list.slice(0, 12)) {
          grammar.beginToken();
          expect(grammar.closingBytes(state), name).toBe(grammar.closing(state, 100_000)!.length);
          const next = continuations(grammar, state);
          if (next.length === 0) return;
          state = next[choice % next.length]![1];
        }
      }),
      { numRuns: 10, seed: 3 },
    );
  }
});

test("[G3] regex: walks end in texts that JavaScript's engine accepts too", () => {
  for (const pattern of ['(\\d{3}-)?\\d{4}', '[^\\n"]{2,5}é+', '(a|bc)*d?', '(\\p{Lu}x|ü){2}']) {
    const grammar = compileGrammar({ type: 'regex', pattern });
    const whole = new RegExp(`^(?:${pattern})$`, 'u');
    fc.assert(
      fc.property(choices, (list) => walk(grammar, list, (text) => expect(text).toMatch(whole))),
      { numRuns: 25, seed: 5 },
    );
  }
});
