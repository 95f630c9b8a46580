import { expect, test } from 'vitest';
import type { StructureNode } from '../../../core/structure-node.ts';
import { compileGrammar } from '../compile.ts';
import { createTokenMatcher } from '../token-matcher.ts';
import type { TokenMatcher } from '../token-matcher.ts';
import { createTokenTable } from '../token-table.ts';
import type { TokenVocabulary } from '../types.ts';

const encoder = new TextEncoder();
const PLAIN = [
  '<call>',
  '</',
  'call>',
  '"}',
  '{"',
  'name',
  '": "',
  'ab',
  '"</call>',
  'x</call>y',
  ' call',
  'é',
  '12',
  '<q>',
];
const CONTROLS = ['<call>', '</call>', '<think>', '<q>', '<q>a', 'call>{', '"', 'a', '</call><end>'];
const texts = [
  ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
  ...[...PLAIN, ...CONTROLS, '<end>', '<stop>'].map((piece) => encoder.encode(piece)),
];
const FIRST_CONTROL = 256 + PLAIN.length;
const [END, STOP] = [texts.length - 2, texts.length - 1];
const vocabulary: TokenVocabulary = {
  size: texts.length,
  bytes: (id) => texts[id]!,
  isControl: (id) => id >= FIRST_CONTROL,
  endIds: [END, STOP],
};
const table = createTokenTable(vocabulary);
const control = (spelling: string): number => FIRST_CONTROL + CONTROLS.indexOf(spelling);
const plain = (spelling: string): number => 256 + PLAIN.indexOf(spelling);

const text = (value: string): StructureNode => ({ kind: 'text', text: value });
const sequence = (...items: StructureNode[]): StructureNode => ({ kind: 'sequence', items });
const json = (schema: unknown, without?: string): StructureNode => ({
  kind: 'json',
  schema,
  ...(without && { without }),
});
const SHORT = { type: 'string', maxLength: 9 };
const open = (root: StructureNode): TokenMatcher =>
  createTokenMatcher(compileGrammar({ type: 'structure', root }), table);
const write = (matcher: TokenMatcher, value: string): TokenMatcher => {
  for (const byte of encoder.encode(value)) expect([value, byte, matcher.accept(byte)]).toEqual([value, byte, true]);
  return matcher;
};
const has = (mask: Uint32Array, id: number): boolean => ((mask[id >>> 5]! >>> (id & 31)) & 1) === 1;
const allowedControls = (matcher: TokenMatcher): string[] =>
  CONTROLS.filter((spelling) => has(matcher.mask(), control(spelling)));

const call = sequence(json({ type: 'object', properties: { name: SHORT } }), text('</call>'));
const STRUCTURES: readonly StructureNode[] = [
  sequence(text('<call>'), call, text('<end>')),
  { kind: 'free', branches: [{ trigger: '<call>', node: call }], endsAfterBranch: false },
  { kind: 'repeat', item: sequence(text('<q>'), { kind: 'raw', until: '</call>' }), separator: '<q>', min: 1, max: 2 },
  sequence({ kind: 'raw', until: '<q>', without: '</call>' }, json({ type: 'string' }, '</call>'), text('</call>')),
  sequence(text('"'), json({}, '</call>'), text('"</call>')),
  { kind: 'raw', until: '</call>', minLength: 12, maxLength: 40 },
  { kind: 'raw', until: '\n</call>', without: '</call>', minLength: 3 },
];

test('[G13] the mask has exactly the accepted tokens, and the text can always be completed', () => {
  let seed = 1;
  const random = (n: number): number => ((seed = (Math.imul(seed, 1103515245) + 12345) >>> 0) >>> 8) % n;
  const wrong: string[] = []; // asserted once at the end: ten times faster than per token
  for (const [number, root] of STRUCTURES.entries()) {
    for (let round = 0; round < 12; round++) {
      const matcher = open(root);
      for (let step = 0; step < 16 && !matcher.isEnded; step++) {
        const mask = matcher.mask();
        const allowed: number[] = [];
        for (let id = 0; id < vocabulary.size; id++) {
          const isTaken = matcher.clone().accept(id);
          if (has(mask, id) !== isTaken) wrong.push(`structure ${number}, token ${id}: accepted ${isTaken}`);
          if (isTaken) allowed.push(id);
        }
        expect([number, matcher.isDead]).toEqual([number, false]);
        const ending = matcher.clone();
        for (const id of matcher.closingTokens()!) expect(ending.accept(id)).toBe(true);
        expect([number, ending.isComplete]).toEqual([number, true]);
        const rich = allowed.filter((id) => id > 255);
        const list = rich.length > 0 && random(3) > 0 ? rich : allowed;
        expect(matcher.accept(list[random(list.length)]!)).toBe(true);
      }
    }
  }
  expect(wrong).toEqual([]);
});

test('[G23] allows a control token exactly where a literal spells it', () => {
  const root = sequence(text('<call>'), json(SHORT), text('</call>'));
  const matcher = open(root);
  expect(allowedControls(matcher)).toEqual(['<call>']);
  expect(allowedControls(write(matcher.clone(), '<c'))).toEqual(['a']);
  expect(matcher.accept(control('<call>'))).toBe(true);
  // The quote that starts the JSON is not a literal, nor is its content.
  expect(allowedControls(matcher)).toEqual([]);
  write(matcher, '"x');
  expect(allowedControls(matcher)).toEqual([]);
  expect([matcher.clone().accept(control('a')), matcher.clone().accept(97)]).toEqual([false, true]);
  write(matcher, '"');
  expect(allowedControls(matcher)).toEqual(['</call>']);
  expect(matcher.accept(control('</call>'))).toBe(true);
  expect(matcher.isComplete).toBe(true);
});

test('[G23] a control token never extends from a literal into JSON or raw text', () => {
  expect(allowedControls(open(sequence(text('<q>'), json(true))))).toEqual(['<q>']);
  expect(allowedControls(open(sequence(text('<q>'), { kind: 'raw', until: 'a' })))).toEqual(['<q>']);
  expect(allowedControls(open(sequence(text('<q>'), text('a'))))).toEqual(['<q>', '<q>a']);
  expect(allowedControls(write(open(sequence(text('<call>'), json({ type: 'object' }))), '<'))).toEqual([]);
});

test('[G23] the byte 0xff is not a marker, and a literal spelled in bytes is the same', () => {
  expect(open(text('<call>')).accept(0xff)).toBe(false);
  expect(open(text('<call>')).accept(plain('<call>'))).toBe(true);
  const free = open({ kind: 'free', branches: [{ trigger: '<call>', node: text('!') }], endsAfterBranch: true });
  expect(free.accept(0xff)).toBe(true);
  expect(free.accept(control('<call>'))).toBe(true);
  expect(free.isComplete).toBe(false);
});

test('[G23] raw text allows a control token only for its end', () => {
  const matcher = write(open({ kind: 'raw', until: 'a</call>' }), 'xa');
  expect(allowedControls(matcher)).toEqual(['</call>', 'a']);
  expect(matcher.clone().accept(control('<think>'))).toBe(false);
  expect(matcher.accept(control('</call>'))).toBe(true);
  expect(matcher.isComplete).toBe(true);
});

test("[G20] free text allows every token except one that violates a trigger's node", () => {
  const node = sequence(text('y'), json({ type: 'null' }));
  const matcher = open({ kind: 'free', branches: [{ trigger: '</call>', node }], endsAfterBranch: false });
  const refused = (): number[] => texts.map((_, id) => id).filter((id) => !has(matcher.mask(), id));
  expect(refused()).toEqual([control('</call><end>')]);
  write(matcher, '<');
  expect(refused()).toEqual([control('</call><end>')]);
  expect(matcher.accept(plain('x</call>y'))).toBe(true);
  expect([matcher.isComplete, allowedControls(matcher).length]).toEqual([false, 0]);
});

test('[G14] an end token may also complete the text by its spelling', () => {
  const matcher = write(open(sequence(text('<call>'), text('<end>'))), '<call>');
  expect([matcher.isComplete, has(matcher.mask(), END), has(matcher.mask(), STOP)]).toEqual([false, true, false]);
  expect(matcher.clone().accept(STOP)).toBe(false);
  expect([matcher.accept(END), matcher.isEnded]).toEqual([true, true]);
  // Where more must follow it would truncate the text.
  expect(open(sequence(text('<end>'), text('more'))).accept(END)).toBe(false);
  const other = createTokenMatcher(compileGrammar({ type: 'regex', pattern: '<end>' }), table);
  expect(other.accept(END)).toBe(false);
});

test('[G15] uses control tokens as closing tokens where possible', () => {
  const matcher = open(sequence(text('<call>'), json({ const: 12 }), text('</call>')));
  expect(matcher.closingTokens()).toEqual([control('<call>'), plain('12'), control('</call>')]);
});

test('[G13][G28] a bounded text has correct masks at every length and ends with a control token only within its bounds', () => {
  const matcher = open({ kind: 'raw', until: '</call>', minLength: 30, maxLength: 70 });
  for (let length = 0; length <= 70; length++) {
    const mask = matcher.mask();
    for (let id = 0; id < vocabulary.size; id++) {
      expect([length, id, has(mask, id)]).toEqual([length, id, matcher.clone().accept(id)]);
    }
    expect([length, allowedControls(matcher)]).toEqual([length, length < 30 ? [] : ['</call>']]);
    // A partial end marker is not part of the text if the rest follows.
    const half = write(matcher.clone(), '</');
    expect([length, half.accept(plain('call>'))]).toEqual([length, length >= 30]);
    if (length < 70) write(matcher, 'x');
  }
  expect(matcher.clone().accept(120)).toBe(false);
});
