import { Validator } from '@cfworker/json-schema';
import type { Schema } from '@cfworker/json-schema';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { compileGrammar } from './compile.ts';
import type { CompiledGrammar, GrammarState } from './types.ts';

const encoder = new TextEncoder();
const names = fc.constantFrom('a', 'b', 'ab');
const scalars = fc.constantFrom<unknown>(
  null,
  true,
  false,
  0,
  1,
  2,
  3,
  -1,
  1.5,
  10,
  '',
  'a',
  'b',
  'ab',
  'aa',
  'é',
  'abc',
);
// Not empty: the oracle considers [] and {} equal.
const values = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 2, depthSize: 'small' },
    scalars,
    fc.array(tie('value'), { minLength: 1, maxLength: 3 }),
    fc.dictionary(names, tie('value'), { minKeys: 1, maxKeys: 3 }),
  ),
})).value;

const schemas = fc.letrec<{ schema: unknown }>((tie) => {
  const inner = tie('schema');
  const pair = fc.tuple(inner, inner);
  const leaf = {
    type: fc.constantFrom<unknown>('null', 'boolean', 'number', 'integer', 'string', 'array', 'object', [
      'string',
      'array',
    ]),
    minimum: fc.constantFrom(0, 1, -1, 1.5),
    exclusiveMaximum: fc.constantFrom(2, 3, 10),
    minLength: fc.nat(2),
    maxLength: fc.nat(3),
    pattern: fc.constantFrom('^a', 'b$', '^a*$', 'a|é', '^.{2}$'),
    enum: fc.array(values, { minLength: 1, maxLength: 3 }),
    required: fc.array(names, { maxLength: 2 }),
    minItems: fc.nat(2),
    maxItems: fc.nat(3),
    minProperties: fc.nat(2),
    maxProperties: fc.nat(2),
  };
  const nested = {
    properties: fc.dictionary(names, inner, { maxKeys: 2 }),
    additionalProperties: inner,
    patternProperties: fc.dictionary(fc.constantFrom('^a', 'b'), inner, { maxKeys: 1 }),
    items: inner,
    prefixItems: pair,
    contains: inner,
    allOf: pair,
    anyOf: pair,
    oneOf: pair,
    not: inner,
    if: inner,
    else: inner,
  };
  const pick = (all: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> =>
    fc
      .subarray(Object.keys(all), { minLength: 1, maxLength: 3 })
      .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, all[key]!]))));
  return {
    schema: fc.oneof({ maxDepth: 3, depthSize: 'small' }, pick(leaf), fc.boolean(), pick({ ...leaf, ...nested })),
  };
}).schema;

function takes(grammar: CompiledGrammar, value: unknown): boolean {
  let state: GrammarState | null = grammar.start;
  grammar.beginToken();
  for (const byte of encoder.encode(JSON.stringify(value))) {
    state = grammar.step(state, byte);
    if (state === null) return false;
  }
  return grammar.isComplete(state);
}

test('[G18] judges random values like an independent validator', () => {
  let numAccepted = 0;
  fc.assert(
    fc.property(schemas, fc.array(values, { minLength: 10, maxLength: 20 }), (schema, list) => {
      const validator = new Validator(schema as Schema, '2020-12');
      const expected = list.map((value) => validator.validate(value as object).valid);
      let grammar: CompiledGrammar;
      try {
        grammar = compileGrammar({ type: 'json_schema', schema });
      } catch (error) {
        if (!(error instanceof RuvLLMError)) throw error;
        if (error.code === 'invalid_option') expect(expected).not.toContain(true);
        return;
      }
      numAccepted++;
      expect(list.map((value) => takes(grammar, value))).toEqual(expected);
      const shortest = new TextDecoder().decode(grammar.closing(grammar.start, 10_000)!);
      expect(validator.validate(JSON.parse(shortest) as object).valid, shortest).toBe(true);
    }),
    { numRuns: 250, seed: 11 },
  );
  expect(numAccepted).toBeGreaterThan(150);
});
