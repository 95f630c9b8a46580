import { expect, test } from 'vitest';
import { compileGrammar } from './compile.ts';
import { createTokenMatcher } from './token-matcher.ts';
import { createTokenTable } from './token-table.ts';
import type { GrammarSource, TokenVocabulary } from './types.ts';

/** All bytes, content of strings, and tokens that end a string: after a name, an escape, a forbidden text. */
const PIECES = [
  'ab":',
  'b":',
  '":',
  'ab",',
  'ab"]',
  '","',
  '"]',
  '"}',
  '\\"",',
  '\\\\":',
  '\\u0061b":',
  '\\n"]',
  '/t>"',
  '</t>"]',
  'é":',
  'ab',
  '"ab',
  'bé',
  '\\u001',
  '\\u001f',
  '\\u001F',
  ' 9',
  '9x',
  ' 9,',
  ' 88',
];
const TEXTS = [
  ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
  ...PIECES.map((piece) => new TextEncoder().encode(piece)),
];
const vocabulary: TokenVocabulary = {
  size: TEXTS.length + 1,
  bytes: (id) => TEXTS[id] ?? new Uint8Array(0),
  isControl: () => false,
  endIds: [TEXTS.length],
};
const table = createTokenTable(vocabulary);
const schema = (of: object): GrammarSource => ({ type: 'json_schema', schema: of });
const unique = (items: object): object => ({ type: 'array', items, uniqueItems: true });
const twoReadings = { anyOf: [{ maxLength: 2 }, { pattern: '^a', maxLength: 3 }], type: 'string' };

test.each<[string, GrammarSource, string, string[], string[]]>([
  ['a new name', schema({ type: 'object' }), '{"', ['ab":', 'b":', '\\\\":', 'é":'], ['ab",', '\\u0061b":']],
  ['an existing name', schema({ type: 'object' }), '{"ab":1,"', ['b":', '\\\\":'], ['ab":', '\\u0061b":']],
  ['its second half', schema({ type: 'object' }), '{"ab":1,"a', ['ab":', 'é":'], ['b":']],
  ['an item', schema({ items: { type: 'string' }, type: 'array' }), '["ab","', ['ab",', '\\"",', '\\n"]'], ['":']],
  [
    'a unique item',
    schema({ items: { type: 'string' }, type: 'array', uniqueItems: true }),
    '["ab","',
    ['\\n"]'],
    ['ab",', 'ab"]'],
  ],
  ['a unique item of full length', schema(unique({ type: 'string', maxLength: 2 })), '["ab","', ['bé'], ['ab']],
  ['the start of one', schema(unique({ type: 'string', maxLength: 2 })), '["ab",', [], ['"ab']],
  [
    'an escaped one',
    schema(unique({ type: 'string', maxLength: 1 })),
    '["\\u001f","',
    ['\\u001'],
    ['\\u001f', '\\u001F'],
  ],
  [
    'a unique item by a pattern',
    schema(unique({ type: 'string', pattern: '^a|é' })),
    '["ab","a',
    ['bé', 'ab",'],
    ['b":'],
  ],
  ['the longer of two readings', schema(unique(twoReadings)), '["b","a', ['bé'], []],
  [
    'the longer of two readings without a text',
    { type: 'structure', root: { kind: 'json', schema: twoReadings, without: '</t>' } },
    '"a',
    ['bé'],
    [],
  ],
  ['an indented number', schema({ items: { type: 'number' }, type: 'array' }), '[\n', [' 9', ' 9,', ' 88'], ['9x']],
  ['a number after a space', schema({ items: { type: 'number' }, type: 'array' }), '[1,', [' 9', ' 9,'], ['9x']],
  ['too short', schema({ items: { type: 'string', minLength: 3 }, type: 'array' }), '["', [], ['ab",', '"]']],
  [
    'a forbidden text',
    {
      type: 'structure',
      root: { kind: 'json', schema: { type: 'array', items: { type: 'string' } }, without: '</t>' },
    },
    '["<',
    ['ab"]'],
    ['/t>"'],
  ],
])('[G13] tokens that end a string: %s', (_, source, before, allowed, forbidden) => {
  const matcher = createTokenMatcher(compileGrammar(source), table);
  for (const byte of new TextEncoder().encode(before)) expect(matcher.accept(byte)).toBe(true);
  const mask = matcher.mask();
  const has = (id: number): boolean => ((mask[id >>> 5]! >>> (id & 31)) & 1) === 1;
  const ids = TEXTS.map((__, id) => id);
  expect(ids.filter(has)).toEqual(ids.filter((id) => matcher.clone().accept(id)));
  expect(PIECES.filter((piece, i) => allowed.includes(piece) && has(256 + i))).toHaveLength(allowed.length);
  expect(PIECES.filter((piece, i) => forbidden.includes(piece) && has(256 + i))).toEqual([]);
});
