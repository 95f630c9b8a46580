import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@cfworker/json-schema';
import type { Schema, SchemaDraft } from '@cfworker/json-schema';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { RuvLLMError } from '../../core/errors.ts';
import { createRandom } from '../../core/random.ts';
import { createConstrainedSampler } from '../constrained-sampler.ts';
import { resolveGenerateParams } from '../generate-params.ts';
import { compileGrammar } from './compile.ts';
import { createTokenMatcher } from './token-matcher.ts';
import { createTokenTable } from './token-table.ts';
import type { CompiledGrammar } from './types.ts';

const suite = join(import.meta.dirname, '../../../../shared/suites/json-schema-test-suite/tests');
const hasSuite = existsSync(suite);
if (!hasSuite) console.log(`skipped: no JSON Schema test suite at ${suite}`);

const LONGER = ['{"', '":', '", "', '"}', '[1', ', ', ',"', '"a"', 'foo', 'bar', 'true', '12', '}}', ']]', '],['];
const END = 256 + LONGER.length;
const encoder = new TextEncoder();
const bytesOf = (id: number): Uint8Array => (id < 256 ? Uint8Array.of(id) : encoder.encode(LONGER[id - 256] ?? ''));
const table = createTokenTable({ size: END + 1, bytes: bytesOf, isControl: (id) => id === END, endIds: [END] });
const isStructural = Uint8Array.from({ length: END + 1 }, (_, id) =>
  Number(id > 255 || '"{}[],:\\01.-etfna'.includes(String.fromCharCode(id))),
);

/** Generates a text with at most `extra` tokens more than needed, from a random model that prefers structure. */
function generate(grammar: CompiledGrammar, extra: number, seed: number): string {
  const matcher = createTokenMatcher(grammar, table);
  const maxTokens = matcher.closingTokens()!.length + extra;
  const random = createRandom(seed);
  const params = { ...resolveGenerateParams({ temperature: 1, topP: 1, topK: 0 }), seed };
  const sampler = createConstrainedSampler(params, createRandom(seed + 1), matcher, {
    maxTokens: Math.max(1, maxTokens),
    endIds: [END],
  });
  const history: number[] = [];
  const logits = new Float32Array(END + 1);
  while (history.length < Math.max(1, maxTokens)) {
    for (let id = 0; id <= END; id++) logits[id] = random.next() * 5 + 4 * isStructural[id]! - (id === END ? 2 : 0);
    const { tokenId } = sampler.sample(logits, history);
    if (tokenId === END) break;
    history.push(tokenId);
  }
  const parts = history.map(bytesOf);
  return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(parts.flatMap((part) => [...part])));
}

function compile(schema: unknown): CompiledGrammar | null {
  try {
    return compileGrammar({ type: 'json_schema', schema });
  } catch (error) {
    if (error instanceof RuvLLMError) return null;
    throw error;
  }
}

/** The problem, or null. */
function judge(schema: unknown, draft: SchemaDraft, grammar: CompiledGrammar, extra: number, seed: number) {
  let text = '';
  try {
    text = generate(grammar, extra, seed);
    const value = JSON.parse(text) as object;
    // The oracle considers them equal.
    if (text.includes('{}') && text.includes('[]')) return null;
    return new Validator(schema as Schema, draft).validate(value).valid ? null : `not an instance: ${text}`;
  } catch (error) {
    return `${(error as Error).message} ${text}`;
  }
}

interface SuiteGroup {
  readonly description: string;
  readonly schema: unknown;
  readonly tests: readonly { readonly data: unknown; readonly valid: boolean }[];
}

/** Whether the oracle agrees with the suite; only then its verdict on other values counts. */
function isKnownToOracle({ schema, tests }: SuiteGroup, draft: SchemaDraft): boolean {
  try {
    const validator = new Validator(schema as Schema, draft);
    return tests.every(({ data, valid }) => validator.validate(data as object).valid === valid);
  } catch {
    return false;
  }
}

test.skipIf(!hasSuite)('[G24] suite: texts are valid instances, however many spare tokens there are', () => {
  const wrong: string[] = [];
  let [numJudged, numSchemas] = [0, 0];
  const drafts = [
    ['draft7', '7'],
    ['draft2020-12', '2020-12'],
  ] as const;
  for (const [folder, draft] of drafts) {
    for (const file of readdirSync(join(suite, folder)).filter((name) => name.endsWith('.json'))) {
      for (const group of JSON.parse(readFileSync(join(suite, folder, file), 'utf8')) as SuiteGroup[]) {
        const { schema } = group;
        const isDraft7 = draft === '7' && typeof schema === 'object';
        const own = isDraft7 ? { $schema: 'http://json-schema.org/draft-07/schema#', ...schema } : schema;
        const grammar = compile(own);
        if (grammar === null || !isKnownToOracle(group, draft)) continue;
        // The short form uses one number of spare tokens per schema, each of the three for a third of them.
        for (const seed of campaign({ short: [numSchemas++ % 3], long: [0, 1, 2] })) {
          numJudged++;
          const problem = judge(own, draft, grammar, seed * 9, seed);
          if (problem !== null) wrong.push(`${folder}/${file} ${group.description} (${seed}): ${problem}`);
        }
      }
    }
  }
  expect(wrong).toEqual([]);
  expect(numJudged).toBeGreaterThan(campaign({ short: 500, long: 1_500 }));
});

const names = fc.constantFrom('a', 'b', 'ab', 'c');
const scalars = fc.constantFrom<unknown>(null, true, false, 0, 1, 2, -1, 1.5, '', 'a', 'b', 'ab', [1], { a: 1 });
const subschemas = fc.constantFrom<unknown>(
  true,
  { type: 'boolean' },
  { type: 'integer', minimum: 0, maximum: 3 },
  { enum: ['a', 'b', 1, null] },
  { type: 'string', maxLength: 2 },
  { type: 'array', items: { type: 'boolean' } },
  { type: 'object', required: ['a'] },
  { const: 1 },
  { minLength: 1 },
  { not: { type: 'string' } },
  { type: ['null', 'boolean', 'array'], maxItems: 1 },
);
/** Keywords where earlier content restricts later content. */
const keywords: Record<string, fc.Arbitrary<unknown>> = {
  type: fc.constantFrom('array', 'object', 'string', ['array', 'object']),
  uniqueItems: fc.constant(true),
  minItems: fc.nat(3),
  maxItems: fc.integer({ min: 1, max: 4 }),
  items: subschemas,
  prefixItems: fc.array(subschemas, { minLength: 1, maxLength: 3 }),
  contains: subschemas,
  minContains: fc.nat(2),
  maxContains: fc.integer({ min: 1, max: 3 }),
  properties: fc.dictionary(names, subschemas, { maxKeys: 3, noNullPrototype: true }),
  required: fc.uniqueArray(names, { maxLength: 2 }),
  minProperties: fc.nat(3),
  maxProperties: fc.integer({ min: 1, max: 4 }),
  additionalProperties: subschemas,
  patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$', '^[ab]{1,2}$'), subschemas, {
    maxKeys: 2,
    noNullPrototype: true,
  }),
  propertyNames: fc.constantFrom<unknown>({ enum: ['a', 'b', 'ab'] }, { maxLength: 1 }, { pattern: '^[a-c]+$' }),
  dependentRequired: fc.dictionary(names, fc.uniqueArray(names, { maxLength: 2 }), {
    maxKeys: 2,
    noNullPrototype: true,
  }),
  not: fc.oneof(subschemas, fc.record({ required: fc.uniqueArray(names, { minLength: 1, maxLength: 2 }) })),
  enum: fc.array(scalars, { minLength: 1, maxLength: 4 }),
};
for (const name of ['if', 'then', 'else']) keywords[name] = subschemas;
const flat = fc
  .subarray(Object.keys(keywords), { minLength: 2, maxLength: 6 })
  .chain((keys) => fc.record(Object.fromEntries(keys.map((key) => [key, keywords[key]!]))));
const schemas = fc.oneof(
  flat,
  fc.record({ type: fc.constant('array'), uniqueItems: fc.constant(true), items: flat, minItems: fc.nat(3) }),
  fc.record({ type: fc.constant('object'), properties: fc.record({ a: flat, b: flat }), required: fc.constant(['a']) }),
);

test('[G24] random schemas: texts are valid instances, however many spare tokens there are', () => {
  let numJudged = 0;
  fc.assert(
    fc.property(schemas, fc.nat(30), fc.nat(1_000), (schema, extra, seed) => {
      const grammar = compile(schema);
      if (grammar === null) return;
      numJudged++;
      expect(judge(schema, '2020-12', grammar, extra, seed)).toBeNull();
    }),
    { numRuns: campaign({ short: 100, long: 400 }), seed: 5 },
  );
  expect(numJudged).toBeGreaterThan(campaign({ short: 37, long: 150 }));
});
