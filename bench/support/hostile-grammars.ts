import type { GrammarSource } from '../../src/sampling/grammar/index.ts';

const range = (length: number): number[] => Array.from({ length }, (_, i) => i);

const schemaOf = (schema: object): GrammarSource => ({ type: 'json_schema', schema });

const properties = (count: number, seed: number): Record<string, object> =>
  Object.fromEntries(range(count).map((i) => [`property ${seed} ${i}`, { type: i % 3 === 0 ? 'integer' : 'string' }]));

function nest(depth: number): object {
  const list = { type: 'array', items: { type: 'string' } };
  let schema: object = { type: 'string' };
  for (let i = 0; i < depth; i++) schema = { type: 'object', properties: { a: schema, b: list }, required: ['a'] };
  return schema;
}

function closedObject(count: number, seed: number): object {
  const all = properties(count, seed);
  return { type: 'object', properties: all, required: Object.keys(all), additionalProperties: false };
}

const unionOf = (count: number, seed: number): object => ({
  anyOf: range(count).map((i) => ({
    type: 'object',
    properties: { kind: { const: `k${i}` }, ...properties(10, seed) },
    required: ['kind'],
    additionalProperties: false,
  })),
});

const either = (i: number): object => ({ anyOf: [{ required: [`x${i}`] }, { required: [`y${i}`] }] });

/** Large valid grammars and expensive ones; seeds make them different, so that none is cached. */
const KINDS: readonly ((seed: number) => GrammarSource)[] = [
  (seed) => schemaOf(closedObject(300 + seed, seed)),
  (seed) => schemaOf({ enum: range(20_000).map((i) => `value ${seed} ${i}`) }),
  (seed) => schemaOf({ pattern: `(a|b)*a(a|b){${40 + seed}}` }),
  (seed) => schemaOf({ type: 'string', pattern: `^[\\w.+-]{1,${64 + seed}}@[\\w-]{1,63}(\\.[\\w-]{2,63}){1,8}$` }),
  (seed) => schemaOf({ type: 'object', allOf: range(25 + seed).map(either) }),
  (seed) => schemaOf({ enum: range(20).map((i) => 2 ** 53 - 4096 * i - 2 * seed) }),
  (seed) => schemaOf(unionOf(20 + seed, seed)),
  (seed) => schemaOf(nest(50 + seed)),
  (seed) => ({ type: 'gbnf', text: `root ::= "a"{4000}{4000}{${4000 - seed}}` }),
  (seed) => ({ type: 'regex', pattern: `((a{1000}){1000}){${1000 - seed}}` }),
];

export const hostileGrammars = (count: number): GrammarSource[] =>
  range(count).map((i) => KINDS[i % KINDS.length]!(Math.floor(i / KINDS.length)));
