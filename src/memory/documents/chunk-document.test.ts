import { describe, expect, test } from 'vitest';
import { chunkDocument } from './chunk-document.ts';
import { describePlace } from './describe-place.ts';
import { CHUNK_TOKENS } from './limits.ts';
import { linesOf } from './plain-text.ts';
import type { DocumentBlock } from './types.ts';

/** As many tokens; only some texts end a chunk of half the size. */
const words = (count: number, word = 'a'): string => Array.from({ length: count }, () => word).join(' ');

type Block = string | (Partial<DocumentBlock> & { readonly text: string });

/** The chunks of blocks with an empty line between them. */
function chunksOf(...blocks: readonly Block[]) {
  let text = '';
  const placed = blocks.map((given): DocumentBlock => {
    const { text: own, ...rest } = typeof given === 'string' ? { text: given } : given;
    const start = text.length;
    text += `${own}\n\n`;
    return { kind: 'paragraph', headings: [], ...rest, start, end: start + own.length };
  });
  return chunkDocument({ text, blocks: placed, pageStarts: null });
}
const sizesOf = (...blocks: readonly Block[]): number[] => chunksOf(...blocks).map(({ text }) => text.split(/\s+/).length); // prettier-ignore

describe('[DC1] a chunk', () => {
  test('has at most 220 tokens', () => {
    expect(sizesOf(words(220))).toEqual([220]);
    expect(sizesOf(words(221))).toHaveLength(2);
    expect(sizesOf(words(89), words(131))).toEqual([220]);
    expect(sizesOf(words(89), words(132))).toHaveLength(2);
  });

  test('ends at 180 tokens, or from 90 on where the hash of its last part says so', () => {
    expect(sizesOf(words(179), words(10))).toEqual([189]);
    expect(sizesOf(words(180), words(10))).toHaveLength(2);
    expect(sizesOf(words(90), words(10))).toEqual([100]);
    expect(sizesOf(words(90, 'h'), words(10))).toHaveLength(2);
    expect(sizesOf(words(89, 'h'), words(10))).toEqual([99]);
  });

  test('begins with a section; a heading alone is none', () => {
    const heading = (title: string): { text: string; kind: 'heading'; headings: string[] } => ({ text: title, kind: 'heading', headings: [title] }); // prettier-ignore
    const chunks = chunksOf(heading('One'), heading('Two'), { text: 'b', headings: ['Two'] }, heading('Six'), { text: 'c', headings: ['Six'] }); // prettier-ignore
    expect(chunks.map(({ text, headings }) => [text, headings])).toEqual([
      ['One\n\nTwo\n\nb', ['Two']],
      ['Six\n\nc', ['Six']],
    ]);
  });

  test('has several small declarations of code, and the name of the largest so far', () => {
    const code = (count: number, name: string) => ({ text: words(count), kind: 'code', headings: [name] }) as const;
    const headingsOf = (...blocks: readonly Block[]) => chunksOf(...blocks).map(({ headings }) => headings[0]); // prettier-ignore
    expect(headingsOf(code(5, 'one'), code(5, 'two'))).toEqual(['one']);
    expect(headingsOf(code(5, 'one'), code(6, 'two'))).toEqual(['two']);
    expect(headingsOf(code(44, 'one'), code(6, 'two'))).toEqual(['one']);
    expect(headingsOf(code(45, 'one'), code(6, 'two'))).toEqual(['one', 'two']);
  });
});

describe('[DC1] a block that is too large', () => {
  test.each([
    ['an empty line', '\n\n', 'a\na. a, '],
    ['a line', '\n', 'a. a, a '],
    ['a sentence', '. ', 'a, a a '],
    ['a part of a sentence', ', ', 'a a a '],
  ])('is divided after %s', (_, mark, inner) => {
    // The first chunk would have room for more: a better place decides.
    const half = `${inner}${words(119 - inner.length / 2)}`;
    const [first, second] = chunksOf(`${half}${mark}b${words(119)}`);
    expect(first!.text).toBe(`${half}${mark}`.trimEnd());
    expect(second!.text).toContain(`b${words(119)}`);
  });

  test('without a space is halved, and never inside a pair', () => {
    const [one, two, ...more] = chunksOf('😀'.repeat(125));
    expect(more).toEqual([]);
    expect([one!.start, one!.end, two!.end]).toEqual([0, 126, 250]);
    expect([one!.text.isWellFormed(), two!.text.isWellFormed()]).toEqual([true, true]);
    expect(chunksOf('x'.repeat(1101)).map(({ end }) => end)).toEqual([550, 1101]);
  });
});

describe('[DC1] a chunk that continues a section', () => {
  test('repeats the last sentences of up to 28 tokens', () => {
    const sentence = (count: number, word: string): string => `${words(count - 1, word)}.`;
    const overlapOf = (...last: readonly string[]): string => {
      const before = `${words(180)}. ${last.join(' ')}`;
      const chunks = chunksOf(before, 'zz');
      return chunks.at(-1)!.text.replace(/\s*zz$/, '');
    };
    const most = sentence(CHUNK_TOKENS.overlap, 'm');
    expect(overlapOf(most)).toBe(most);
    expect(overlapOf(sentence(10, 'k'), sentence(18, 'm'))).toBe(`${sentence(10, 'k')} ${sentence(18, 'm')}`);
    expect(overlapOf(sentence(11, 'k'), sentence(18, 'm'))).toBe(sentence(18, 'm'));
  });

  test('repeats nothing of another section', () => {
    const chunks = chunksOf({ text: words(180), headings: ['One'] }, { text: words(10, 'b'), headings: ['Two'] });
    expect(chunks.map(({ text }) => text)).toEqual([words(180), words(10, 'b')]);
  });
});

test('[DC1] a chunk has the lines or the pages of its first and last character', () => {
  const text = 'one\r\ntwo\rthree\nfour';
  const block = (from: string, to: string): DocumentBlock => ({ kind: 'paragraph', start: text.indexOf(from), end: text.indexOf(to) + to.length, headings: [] }); // prettier-ignore
  const placeOf = (from: string, to: string, pageStarts: readonly number[] | null) => {
    const [chunk] = chunkDocument({ text, blocks: [block(from, to)], pageStarts });
    return [chunk!.startLine, chunk!.endLine, chunk!.startPage, chunk!.endPage];
  };
  expect(placeOf('one', 'two', null)).toEqual([1, 2, null, null]);
  expect(placeOf('three', 'four', null)).toEqual([3, 4, null, null]);
  expect(placeOf('one', 'two', [0, 9, 15])).toEqual([null, null, 1, 1]);
  expect(placeOf('two', 'four', [0, 9, 15])).toEqual([null, null, 1, 3]);
});

test.each([
  [{ startLine: 12, endLine: 30 }, 'lines 12–30'],
  [{ startLine: 12, endLine: 12 }, 'line 12'],
  [{}, 'line 1'],
  [{ startPage: 3, endPage: 3 }, 'page 3'],
  [{ startPage: 3, endPage: 5 }, 'pages 3–5'],
  [{ startPage: 3 }, 'page 3'],
])('the place %j is shown as "%s"', (place, shown) => {
  expect(describePlace({ startLine: null, endLine: null, startPage: null, endPage: null, ...place })).toBe(shown);
});

test.each([
  ['', ['']],
  ['a', ['a']],
  ['a\n', ['a']],
  ['\na', ['', 'a']],
  ['a\r\nb\rc\n\nd', ['a', 'b', 'c', '', 'd']],
])('the lines of %j', (text, lines) => {
  expect(linesOf(text).map((line) => line.text)).toEqual(lines);
  for (const { text: line, start, end } of linesOf(text)) expect(text.slice(start, end)).toBe(line);
});
