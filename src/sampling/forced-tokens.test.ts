import { expect, test } from 'vitest';
import { createForcedTokens } from './forced-tokens.ts';
import { compileGrammar, createTokenMatcher, createTokenTable, type GrammarSource } from './grammar/index.ts';

const PIECES = [
  ...Array.from({ length: 128 }, (_, byte) => String.fromCharCode(byte)),
  '{"',
  '":',
  ' "',
  '", "',
  '"}',
  'na',
  'name',
  'age',
  'true',
  'false',
  '<end>',
];
const END = PIECES.length - 1;
const idOf = (piece: string): number => PIECES.indexOf(piece);
const table = createTokenTable({
  size: PIECES.length,
  bytes: (id) => new TextEncoder().encode(PIECES[id]),
  isControl: (id) => id === END,
  endIds: [END],
});
const open = (source: GrammarSource) => createTokenMatcher(compileGrammar(source), table);
const schema = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'boolean' } },
  required: ['name', 'age'],
  additionalProperties: false,
};

function follow(matcher: ReturnType<typeof open>, forced: ReturnType<typeof createForcedTokens>, ...pieces: string[]) {
  for (const piece of pieces) {
    expect(matcher.accept(idOf(piece)), piece).toBe(true);
    forced.observe(matcher, idOf(piece));
  }
}
const guess = (matcher: ReturnType<typeof open>, forced = createForcedTokens(), maxTokens = 8): string[] =>
  forced.guess(matcher, maxTokens).map((id) => PIECES[id]!);

test('guesses keys and punctuation with the longest tokens, up to the first free text', () => {
  const { name } = schema.properties;
  const matcher = open({ type: 'json_schema', schema: { ...schema, properties: { name }, required: ['name'] } });
  expect(guess(matcher)).toEqual(['{"', 'name', '":']);
  expect(guess(matcher, createForcedTokens(), 2)).toEqual(['{"', 'name']);
  // Keys may come in any order.
  expect(guess(open({ type: 'json_schema', schema }))).toEqual(['{"']);
});

test('changes nothing: the matcher stays where it is', () => {
  const matcher = open({ type: 'json_schema', schema });
  const before = matcher.mask().slice();
  guess(matcher);
  expect(matcher.mask()).toEqual(before);
});

test('stops where the text may branch, and before the end of the answer', () => {
  const matcher = open({ type: 'json_schema', schema });
  const forced = createForcedTokens();
  follow(matcher, forced, '{"', 'name', '":', '"');
  expect(guess(matcher, forced)).toEqual([]);
  follow(matcher, forced, 'x', '"', ',', '"', 'age', '":');
  expect(guess(matcher, forced)).toEqual([]);
  follow(matcher, forced, 't');
  expect(guess(matcher, forced)).toEqual(['r', 'u', 'e', '}']);
});

test('spaces the text as it was spaced before', () => {
  const matcher = open({ type: 'json_schema', schema });
  const forced = createForcedTokens();
  follow(matcher, forced, '{"', 'name', '":', ' "', 'x', '"', ',', ' "');
  const second = open({ type: 'json_schema', schema });
  follow(second, forced, '{"', 'name', '":');
  expect(guess(second, forced)).toEqual([' "']);
});

test('guesses nothing in a text of any content', () => {
  expect(guess(open({ type: 'regex', pattern: '[a-z ]+' }))).toEqual([]);
});
