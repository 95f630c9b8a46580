import { expect, test } from 'vitest';
import { compileGrammar } from './compile.ts';
import { createTokenMatcher } from './token-matcher.ts';
import { spellBytes } from './spell-bytes.ts';
import { createTokenTable } from './token-table.ts';
import type { TokenVocabulary } from './types.ts';

const encoder = new TextEncoder();

/** All single bytes, pieces of JSON and text, a control token and an end token. */
function smallVocabulary(): TokenVocabulary & { readonly texts: readonly Uint8Array[] } {
  const pieces = [
    '{"',
    '":',
    '": "',
    '","',
    '"}',
    '"},{"',
    'name',
    'na',
    'me',
    ' a',
    'the ',
    '12',
    '1.',
    '\\"',
    '\\u00',
    'é',
    'éa"',
    ',\n  "',
    'true',
    'null}',
    '"xxxxxxx',
    '":"xxxxx',
  ];
  const texts = [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...pieces.map((piece) => encoder.encode(piece)),
  ];
  // A partial character, a token that ends in one, and one far longer than any length bound below.
  texts.push(encoder.encode('é').slice(0, 1), Uint8Array.of(97, 0xf0, 0x9f), encoder.encode('x'.repeat(40)));
  const [control, end] = [texts.length, texts.length + 1];
  texts.push(encoder.encode('<c>'), new Uint8Array(0));
  return { size: texts.length, bytes: (id) => texts[id]!, isControl: (id) => id === control, endIds: [end], texts };
}

const vocabulary = smallVocabulary();
const table = createTokenTable(vocabulary);
const has = (mask: Uint32Array, id: number): boolean => ((mask[id >>> 5]! >>> (id & 31)) & 1) === 1;

const SOURCES = [
  {},
  {
    type: 'object',
    properties: { name: { type: 'string', maxLength: 4 }, n: { type: 'integer', maximum: 20 } },
    additionalProperties: false,
  },
  { type: 'string', minLength: 3, maxLength: 45 },
  { type: 'array', items: { enum: ['the ', 'na', 'é'] }, uniqueItems: true },
  { type: 'string', pattern: '^(na)*me$' },
];

test('[G13] the mask has exactly the accepted tokens', () => {
  let state = 1;
  const random = (n: number): number => ((state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 8) % n;
  const wrong: string[] = []; // asserted once at the end: ten times faster than per token
  for (const schema of SOURCES) {
    for (let round = 0; round < 12; round++) {
      const matcher = createTokenMatcher(compileGrammar({ type: 'json_schema', schema }), table);
      const trail: number[] = [];
      for (let step = 0; step < 14 && !matcher.isEnded; step++) {
        const mask = matcher.mask();
        const allowed: number[] = [];
        for (let id = 0; id < vocabulary.size; id++) {
          const isTaken = matcher.clone().accept(id);
          if (has(mask, id) !== isTaken) wrong.push(`token ${id} in ${JSON.stringify(schema)}: accepted ${isTaken}`);
          if (isTaken) allowed.push(id);
        }
        expect(matcher.isDead, `${trail.join()} in ${JSON.stringify(schema)}`).toBe(false);
        expect(matcher.forcedToken()).toBe(allowed.length === 1 ? allowed[0] : null);
        const rich = allowed.filter((id) => id > 255);
        const list = rich.length > 0 && random(3) > 0 ? rich : allowed;
        trail.push(list[random(list.length)]!);
        expect(matcher.accept(trail.at(-1)!)).toBe(true);
      }
    }
  }
  expect(wrong).toEqual([]);
});

test('[G14] allows the end token exactly when the text is complete, and nothing after it', () => {
  const [end] = vocabulary.endIds as [number];
  const matcher = createTokenMatcher(compileGrammar({ type: 'json_schema', schema: { const: 12 } }), table);
  expect([matcher.isComplete, has(matcher.mask(), end), matcher.accept(end)]).toEqual([false, false, false]);
  expect(matcher.accept('1'.charCodeAt(0))).toBe(true);
  expect(matcher.closingBytes()).toBe(1);
  expect(matcher.closingTokens()).toEqual(['2'.charCodeAt(0)]);
  expect(matcher.accept('2'.charCodeAt(0))).toBe(true);
  expect([matcher.isComplete, has(matcher.mask(), end), matcher.accept(end)]).toEqual([true, true, true]);
  expect([matcher.isEnded, matcher.mask().some((word) => word !== 0), matcher.accept(end)]).toEqual([
    true,
    false,
    false,
  ]);
  expect(() => matcher.accept(vocabulary.size)).toThrow(/outside the vocabulary/);
});

test('[G15] spells the closing bytes with the fewest tokens', () => {
  expect(spellBytes(table, encoder.encode('{"name'))!.map((id) => vocabulary.texts[id]!.length)).toEqual([2, 4]);
  expect(spellBytes(table, new Uint8Array(0))).toEqual([]);
  const grammar = compileGrammar({ type: 'json_schema', schema: { type: 'object', required: ['name'] } });
  const matcher = createTokenMatcher(grammar, table);
  for (const id of matcher.closingTokens()!) expect(matcher.accept(id)).toBe(true);
  expect(matcher.isComplete).toBe(true);
});

test('[G16] cached masks stay within their byte limit and equal fresh ones', () => {
  const grammar = compileGrammar({ type: 'json_object' });
  const matcher = createTokenMatcher(grammar, table, { cacheBytes: 200 });
  const first = Uint32Array.from(matcher.mask());
  expect(matcher.mask()).toBe(matcher.mask());
  const other = matcher.clone();
  for (const byte of encoder.encode('{"a":[1,2,"x')) {
    other.accept(byte);
    other.mask();
  }
  expect(Uint32Array.from(matcher.mask())).toEqual(first);
});

test('[G17] reports a vocabulary that cannot spell the grammar as dead', () => {
  const letters = createTokenTable({
    size: 2,
    bytes: (id) => Uint8Array.of(97 + id),
    isControl: () => false,
    endIds: [],
  });
  expect(createTokenMatcher(compileGrammar({ type: 'json_object' }), letters).isDead).toBe(true);
});
