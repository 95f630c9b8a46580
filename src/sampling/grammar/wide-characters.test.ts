import { expect, test } from 'vitest';
import { compileGrammar } from './compile.ts';
import { createTokenMatcher } from './token-matcher.ts';
import { createTokenTable } from './token-table.ts';
import type { GrammarSource } from './types.ts';

const encoder = new TextEncoder();
/** Tokens of characters that patterns tell apart, in the middle and at the ends of others, and without their last bytes. */
const CHARACTERS = [
  'é',
  '日',
  '本',
  '\u2027',
  '\u2028',
  '\u3000',
  '\ud7ff',
  '\ue000',
  '😀',
  'E',
  '\n',
  '\r',
  '"',
  '\\',
];
const pieces = CHARACTERS.flatMap((one) => [`a${one}`, `${one}a`, `日${one}`, `${one}本`, `é${one}😀`]);
const spelled = pieces.map((piece) => encoder.encode(piece));
const TEXTS = [
  ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
  ...spelled,
  ...spelled.map((bytes) => bytes.subarray(0, -1)).filter(({ length }) => length > 1),
  ...spelled.map((bytes) => bytes.subarray(1)).filter(({ length }) => length > 1),
];
const table = createTokenTable({
  size: TEXTS.length + 1,
  bytes: (id) => TEXTS[id] ?? new Uint8Array(0),
  isControl: () => false,
  endIds: [TEXTS.length],
});

const regex = (pattern: string): GrammarSource => ({ type: 'regex', pattern });
const gbnf = (text: string): GrammarSource => ({ type: 'gbnf', text });
const json = (pattern: string): GrammarSource => ({ type: 'json_schema', schema: { type: 'string', pattern } });

test.each<[GrammarSource, string]>([
  [regex('.+'), 'a'],
  [regex('(.|\\n)*END'), 'xE'],
  [regex('([^日]|日本)*'), 'é日'],
  [regex('[\\u2000-\\u2fff]*'), '\u2026'],
  [regex('\\p{L}*'), 'aé'],
  [gbnf('root ::= [^a]* "a"'), '日'],
  [gbnf('root ::= ([^E日] | "E" "a")*'), 'éE'],
  [gbnf('root ::= ([一-龥] | [a-z])+'), '日a'],
  [gbnf('root ::= item*\nitem ::= "日" [^é]+ "é" | [^日]'), 'a日'],
  [json('^.+$'), '"a'],
  [json('^[^é]*$'), '"a'],
  [json('^.*日$'), '"日'],
  [json('^[\\u2000-\\u2fff]*$'), '"\u2026'],
])('[G13] the mask has exactly the accepted tokens of multi-byte characters: %j after %j', (source, text) => {
  const matcher = createTokenMatcher(compileGrammar(source), table);
  const ids = TEXTS.map((_, id) => id);
  for (const byte of [null, ...encoder.encode(text)]) {
    if (byte !== null) expect(matcher.accept(byte)).toBe(true);
    const mask = matcher.mask();
    const allowed = ids.filter((id) => ((mask[id >>> 5]! >>> (id & 31)) & 1) === 1);
    expect(allowed).toEqual(ids.filter((id) => matcher.clone().accept(id)));
  }
});
