import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { StructureNode } from '../../../core/structure-node.ts';
import { compileGrammar } from '../compile.ts';
import type { GrammarLimits } from '../limits.ts';
import type { CompiledGrammar, GrammarState } from '../types.ts';

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });
const compile = (root: unknown, limits?: Partial<GrammarLimits>): CompiledGrammar =>
  compileGrammar({ type: 'structure', root: root as StructureNode }, limits);
const text = (value: string): StructureNode => ({ kind: 'text', text: value });
const raw = (until: string) => ({ kind: 'raw', until }) as const;
const sequence = (...items: StructureNode[]): StructureNode => ({ kind: 'sequence', items });
const NUMBER: StructureNode = { kind: 'json', schema: { type: 'integer', minimum: 0, maximum: 20 } };

function after(grammar: CompiledGrammar, bytes: Iterable<number>, from = grammar.start): GrammarState | null {
  let state: GrammarState | null = from;
  for (const byte of bytes) if (state !== null) state = grammar.step(state, byte);
  return state;
}
const accepts = (grammar: CompiledGrammar, value: string): boolean => {
  const state = after(grammar, encoder.encode(value));
  return state !== null && grammar.isComplete(state);
};

const escape = (value: string): string => value.replaceAll(/[^ab]/g, (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`);
/** The same language as a JavaScript regular expression. */
function regexOf(node: StructureNode): string {
  if (node.kind === 'text') return escape(node.text);
  if (node.kind === 'raw') {
    const without = node.without === undefined ? '' : `|${escape(node.without)}`;
    return `(?:(?!${escape(node.until)}${without})[^])*${escape(node.until)}`;
  }
  if (node.kind === 'sequence') return node.items.map(regexOf).join('');
  if (node.kind === 'choice') return `(?:${node.items.map(regexOf).join('|')})`;
  if (node.kind === 'json') return '(?:[0-9]|1[0-9]|20)';
  if (node.kind === 'free') throw new Error('no regular expression');
  const { min, max, separator } = node;
  const item = regexOf(node.item);
  if (max === 0) return '';
  const some = `${item}(?:${escape(separator)}${item}){${Math.max(min - 1, 0)},${max === null ? '' : max - 1}}`;
  return min === 0 ? `(?:${some})?` : `(?:${some})`;
}

const letters = (minLength: number) => fc.string({ unit: fc.constantFrom('a', 'b'), minLength, maxLength: 3 });
const { node: anyNode } = fc.letrec<{ node: StructureNode; leaf: StructureNode }>((tie) => ({
  leaf: fc.oneof(
    letters(0).map(text),
    letters(1).map(raw),
    fc.constantFrom<StructureNode>({ kind: 'raw', until: 'b', without: 'aaa' }),
  ),
  node: fc.oneof(
    { maxDepth: 3 },
    tie('leaf'),
    fc.array(tie('node'), { maxLength: 3 }).map((items): StructureNode => ({ kind: 'sequence', items })),
    fc.array(tie('node'), { minLength: 1, maxLength: 3 }).map((items): StructureNode => ({ kind: 'choice', items })),
    fc
      .record({ item: tie('node'), separator: letters(1), min: fc.nat(2), more: fc.option(fc.nat(2)) })
      .map(({ item, separator, min, more }): StructureNode => {
        return { kind: 'repeat', item, separator, min, max: more === null ? null : min + more };
      }),
  ),
}));

test('[G19] accepts the texts of the same regular expression, and every state can be completed', () => {
  const words = Array.from({ length: 127 }, (_, i) =>
    (i + 1).toString(2).slice(1).replaceAll('0', 'a').replaceAll('1', 'b'),
  );
  fc.assert(
    fc.property(anyNode, (node) => {
      const grammar = compile(node);
      const regex = new RegExp(`^(?:${regexOf(node)})$`, 'u');
      for (const word of words) {
        expect([word, accepts(grammar, word)]).toEqual([word, regex.test(word)]);
        const state = after(grammar, encoder.encode(word));
        if (state === null) continue;
        const rest = grammar.closing(state, 1_000)!;
        expect(rest.length).toBe(grammar.closingBytes(state));
        expect([word, regex.test(word + decoder.decode(rest))]).toEqual([word, true]);
      }
    }),
    { numRuns: 150, seed: 11 },
  );
});

test('[G19] JSON ends where its value may end, and the next part continues', () => {
  const grammar = compile(sequence(text('n='), NUMBER, text('0;')));
  expect(['n=10;', 'n=100;', 'n=00;', 'n=200;', 'n=210;', 'n=1;', 'n=2'].map((one) => accepts(grammar, one))).toEqual([
    true,
    true,
    true,
    true,
    false,
    false,
    false,
  ]);
  const part = after(grammar, encoder.encode('n=1'))!;
  expect(decoder.decode(grammar.closing(part, 10)!)).toBe('0;');
});

test('[G20] free text is anything and may end anywhere; a trigger applies its node, then text is free again', () => {
  const branches = [
    { trigger: '<a>', node: sequence(NUMBER, text(';')) },
    { trigger: 'a>b', node: text('!') },
    { trigger: 'xx', node: text('x') },
  ];
  const grammar = compile({ kind: 'free', branches, endsAfterBranch: false });
  for (const good of ['', 'é<a', '<<a>7;<a>12;z', 'a>b!', 'ba>b!xxx', 'xxx', '\u0000']) {
    expect([good, accepts(grammar, good)]).toEqual([good, true]);
  }
  for (const bad of ['<a>', '<a>7', '<a>b!', 'xx', 'a>b', '<a>7;xx']) {
    expect([bad, accepts(grammar, bad)]).toEqual([bad, false]);
  }
  // Invalid UTF-8 is the model's responsibility here.
  expect(after(grammar, [0xff, 0x80, 0xc3])).not.toBeNull();
  const ending = compile({ kind: 'free', branches, endsAfterBranch: true });
  expect(['<a>7;', 'z<a>7;'].map((one) => accepts(ending, one))).toEqual([true, true]);
  expect(after(ending, encoder.encode('<a>7; '))).toBeNull();
  const inside = compile(sequence({ kind: 'free', branches, endsAfterBranch: false }, text('end')));
  expect(['end', 'endend', '<a>7;end', '<a>7end', 'x'].map((one) => accepts(inside, one))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});

test('[G21] raw text is UTF-8 and can be completed from anywhere', () => {
  const grammar = compile(raw('é>'));
  for (const bytes of [[0xc0], [0xe0, 0x80], [0xed, 0xa0], [0xf4, 0x90], [0x80], [0xff]]) {
    expect(after(grammar, bytes)).toBeNull();
  }
  for (const bytes of [[], [0xc3], [0xe0], [0xf0, 0x9f], [0xf4], [0xc3, 0xa9], [0xed], [0x61, 0xc3]]) {
    const state = after(grammar, bytes)!;
    const rest = grammar.closing(state, 100)!;
    expect(rest.length).toBe(grammar.closingBytes(state));
    expect(decoder.decode(Uint8Array.from([...bytes, ...rest])).endsWith('é>')).toBe(true);
    expect(grammar.isComplete(after(grammar, rest, state)!)).toBe(true);
  }
});

test('[G22] JSON writes a forbidden text with escapes', () => {
  const schema = { const: { k: 'a</p>b</p>' } };
  const grammar = compile(sequence({ kind: 'json', schema, without: '</p>' }, text('</p>')));
  expect(accepts(grammar, '{"k":"a</p>b\\u003c/p>"}</p>')).toBe(false);
  expect(accepts(grammar, '{"k":"a</p\\u003eb\\u003c/p>"}</p>')).toBe(true);
  for (const begun of ['', '{"k":"a</p', '{"k":"a</p\\u003eb<']) {
    const state = after(grammar, encoder.encode(begun))!;
    const rest = decoder.decode(grammar.closing(state, 100)!);
    expect(rest.length).toBe(grammar.closingBytes(state));
    expect(JSON.parse((begun + rest).slice(0, -4))).toEqual(schema.const);
    expect((begun + rest).indexOf('</p>')).toBe((begun + rest).length - 4);
  }
  expect(() => compile({ kind: 'json', schema: {}, without: ', ' })).toThrow(/outside strings/);
  expect(() => compile({ kind: 'raw', until: '>b', without: 'a>' })).toThrow(/overlap the start of "until"/);
});

test('[G28] raw text respects its length bounds, not counting its end', () => {
  const words = (letters: readonly string[], most: number): string[] =>
    most === 0 ? [''] : ['', ...letters.flatMap((letter) => words(letters, most - 1).map((rest) => letter + rest))];
  const cases: [until: string, without: string | undefined, letters: string[]][] = [
    ['<>', undefined, ['<', '>', 'é']],
    ['aa', undefined, ['a', 'é']],
    ['aab', undefined, ['a', 'b']],
    ['\n<>', '<>', ['\n', '<', '>']],
    ['é>', undefined, ['é', '>', 'x']],
  ];
  for (const [until, without, letters] of cases) {
    const end = encoder.encode(until).length;
    for (const [min, max] of [
      [0, 0],
      [0, 2],
      [2, null],
      [1, 3],
      [2, 2],
    ] as const) {
      const grammar = compile({
        ...raw(until),
        ...(without === undefined ? {} : { without }),
        minLength: min,
        ...(max === null ? {} : { maxLength: max }),
      });
      expect(grammar.closingBytes(grammar.start)).toBe(min + end);
      for (const word of new Set(words(letters, 6))) {
        const content = word.slice(0, word.length - until.length);
        const isRaw = word.endsWith(until) && word.indexOf(until) === content.length;
        const length = [...content].length;
        const isGood =
          isRaw && !(without !== undefined && content.includes(without)) && length >= min && length <= (max ?? 99);
        const where = JSON.stringify([until, min, max, word]);
        expect([where, accepts(grammar, word)]).toEqual([where, isGood]);
        const bytes = encoder.encode(word);
        for (const cut of [bytes, bytes.subarray(0, -1)]) {
          const state = after(grammar, cut);
          if (state === null) continue;
          const rest = grammar.closing(state, 100)!;
          expect([where, rest.length]).toEqual([where, grammar.closingBytes(state)]);
          expect([where, grammar.isComplete(after(grammar, rest, state)!)]).toEqual([where, true]);
        }
      }
    }
  }
});

test('[G9] a minimum of a billion items costs nothing until written', () => {
  const grammar = compile({ kind: 'repeat', item: text('ab'), separator: ',', min: 1e9, max: null });
  expect(grammar.closingBytes(after(grammar, encoder.encode('ab,a'))!)).toBe(3e9 - 1 - 4);
  expect(grammar.closing(grammar.start, 65_536)).toBeNull();
  const long = compile(sequence({ ...raw('<'), minLength: 1e9 }, text('!')));
  expect(long.closingBytes(long.start)).toBe(1e9 + 2);
  expect(long.closing(after(long, encoder.encode('abc'))!, 65_536)).toBeNull();
});

test('[G8] rejects malformed, too large or too deeply nested input with the place and the numbers', () => {
  const nested = (depth: number): StructureNode => (depth === 0 ? text('x') : sequence(nested(depth - 1)));
  const cases: [unknown, RegExp, Partial<GrammarLimits>?][] = [
    [null, /\/root: must be a node/],
    [{ kind: 'any' }, /\/root\/kind: must be one of text, json, raw/],
    [{ kind: 'toString' }, /\/root\/kind: must be one of/],
    [{ kind: 'text' }, /"text" is missing/],
    [{ kind: 'text', text: 'x', more: 1 }, /"more" is unknown/],
    [{ kind: 'text', text: 7 }, /\/root\/text: must be a string, got number/],
    [text('a\ud800b'), /contains a lone surrogate/],
    [text('12345'), /\/root\/text: 5 bytes, the limit is 4/, { maxTextBytes: 4 }],
    [{ ...raw('b'), minLength: 2, maxLength: 1 }, /minLength 2 exceeds maxLength 1/],
    [{ ...raw('b'), maxLength: -1 }, /\/root\/maxLength: must be a non-negative integer/],
    [raw(''), /\/root\/until: must not be empty/],
    [{ kind: 'choice', items: [] }, /\/root\/items: must not be empty/],
    [sequence(text('a'), text('b'), text('c')), /\/root\/items\/2: more than 2 nodes/, { maxNodes: 2 }],
    [nested(12), /nested deeper than 8 nodes/, { maxDepth: 8 }],
    [text('x'.repeat(200)), /structure at the root: larger than 100 characters/, { maxSourceLength: 100 }],
    [{ kind: 'repeat', item: text(''), separator: '', min: 0, max: null }, /may be empty requires a separator/],
    [{ kind: 'repeat', item: text('a'), separator: '', min: 3, max: 2 }, /min 3 exceeds max 2/],
    [
      { kind: 'repeat', item: text('a'), separator: '', min: -1, max: 2 },
      /\/root\/min: must be a non-negative integer/,
    ],
    [
      { kind: 'free', branches: [{ trigger: '', node: text('a') }], endsAfterBranch: true },
      /\/0\/trigger: must not be empty/,
    ],
    [{ kind: 'free', branches: [], endsAfterBranch: 1 }, /must be a boolean/],
    [{ kind: 'json', schema: { type: 'string', minLength: 2, maxLength: 1 } }, /no value satisfies it/],
  ];
  for (const [root, message, limits] of cases) {
    let caught: unknown = null;
    try {
      compile(root, limits);
    } catch (error) {
      caught = error;
    }
    expect(caught, String(message)).toMatchObject({
      code: expect.stringMatching(/invalid_option|unsupported/) as string,
    });
    expect((caught as Error).message).toMatch(message);
  }
  const cyclic: { kind: string; items: unknown[] } = { kind: 'sequence', items: [] };
  cyclic.items.push(cyclic);
  expect(() => compile(cyclic)).toThrow(/nested deeper than/);
});
