import { expect, test } from 'vitest';
import { createRandom } from '../core/random.ts';
import { createConstrainedSampler } from './constrained-sampler.ts';
import { resolveGenerateParams, type GenerateParams } from './generate-params.ts';
import { compileGrammar, createTokenMatcher, createTokenTable, type GrammarSource } from './grammar/index.ts';

/** All ASCII bytes, some longer tokens, a control token and an end token. */
const PIECES = [
  ...Array.from({ length: 128 }, (_, byte) => String.fromCharCode(byte)),
  '{"',
  '":',
  '", "',
  '"}',
  'name',
  'age',
  'true',
  '123',
  '<control>',
  '<end>',
];
const CONTROL = PIECES.length - 2;
const END = PIECES.length - 1;
const table = createTokenTable({
  size: PIECES.length,
  bytes: (id) => new TextEncoder().encode(PIECES[id]),
  isControl: (id) => id >= CONTROL,
  endIds: [END],
});

function generate(source: GrammarSource, maxTokens: number, seed: number, params: GenerateParams = {}): string {
  const random = createRandom(seed);
  const sampler = createConstrainedSampler(
    { ...resolveGenerateParams({ temperature: 1, topP: 1, ...params }), seed },
    createRandom(seed + 1),
    createTokenMatcher(compileGrammar(source), table),
    { maxTokens, endIds: [END] },
  );
  const history: number[] = [];
  while (history.length < maxTokens) {
    const logits = Float32Array.from(PIECES, () => random.next() * 6);
    const { tokenId } = sampler.sample(logits, history);
    if (tokenId === END) break;
    history.push(tokenId);
  }
  return history.map((id) => PIECES[id]).join('');
}

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string' },
    age: { type: 'integer' },
    tags: { type: 'array', items: { type: 'boolean' } },
  },
  required: ['name', 'age'],
  additionalProperties: false,
};

test('the text always satisfies the schema, also when tokens run out', () => {
  for (let seed = 0; seed < 150; seed++) {
    const text = generate({ type: 'json_schema', schema }, 12 + (seed % 60), seed);
    const value = JSON.parse(text) as { name: unknown; age: unknown };
    expect(typeof value.name).toBe('string');
    expect(Number.isInteger(value.age)).toBe(true);
    expect(Object.keys(value).every((key) => ['name', 'age', 'tags'].includes(key))).toBe(true);
  }
});

test('greedy takes the best allowed token and no control token', () => {
  const source: GrammarSource = { type: 'regex', pattern: '(true|123)!' };
  const texts = new Set(Array.from({ length: 20 }, (_, seed) => generate(source, 8, seed, { temperature: 0 })));
  expect([...texts].sort()).toEqual(['123!', 'true!']);
});

test('rejects a maxTokens below the shortest text, with both numbers', () => {
  // {"name":"","age":0} takes about ten tokens.
  expect(() => generate({ type: 'json_schema', schema }, 4, 1)).toThrow(
    expect.objectContaining({
      code: 'invalid_option',
      message: expect.stringMatching(/"maxTokens" is 4, .* takes \d+ tokens/),
    }),
  );
});

test("reports the model's log-probabilities before the mask", () => {
  const params = { ...resolveGenerateParams({ topLogprobs: 2 }), seed: 1 };
  const matcher = createTokenMatcher(compileGrammar({ type: 'regex', pattern: 'a' }), table);
  const sampler = createConstrainedSampler(params, createRandom(1), matcher, { maxTokens: 3, endIds: [END] });
  const logits = new Float32Array(PIECES.length);
  logits[98] = Math.log(PIECES.length); // "b", which is not allowed
  const { tokenId, logprob, top } = sampler.sample(logits, []);
  expect(tokenId).toBe(97);
  expect(logprob).toBeCloseTo(-Math.log(2 * PIECES.length - 1), 5);
  expect(top[0]).toMatchObject({ tokenId: 98 });
});

test('a minimum length delays the end where the grammar allows more, and never where it has ended', () => {
  const endBan = { ids: [END], length: 6 };
  for (const [pattern, expected] of [
    ['a*', 6],
    ['ab', 2],
  ] as const) {
    const sampler = createConstrainedSampler(
      { ...resolveGenerateParams({ temperature: 0 }), endBan },
      createRandom(1),
      createTokenMatcher(compileGrammar({ type: 'regex', pattern }), table),
      { maxTokens: 20, endIds: [END] },
    );
    const logits = Float32Array.from(PIECES, (_, id) => (id === END ? 9 : 0));
    const history: number[] = [];
    for (let id = 0; id !== END;) {
      id = sampler.sample(logits, history).tokenId;
      if (id !== END) history.push(id);
    }
    expect(history).toHaveLength(expected);
  }
});
