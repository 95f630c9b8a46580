import { array, assert, integer, property, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { packContext, type PackItem } from './pack.ts';

/** Not additive: two texts have other tokens together than apart. */
const countTokens = (text: string): number => (text.match(/[a-z0-9]+|[^a-z0-9]{1,3}/gi) ?? []).length;

const TEXT = 'Alpha one. Beta two. Gamma three. Delta four. Epsilon five. Zeta six. Eta seven. Theta eight.';
/** Chunks of 40 characters that overlap by 10. */
const chunks = Array.from({ length: 3 }, (_, index) => {
  const [start, end] = [index * 30, Math.min(TEXT.length, index * 30 + 40)];
  return {
    id: `chunk${index}`,
    text: TEXT.slice(start, end),
    position: { documentId: 'd', name: 'greek.md', index, start, end, headings: ['Letters'], startLine: index + 1, endLine: index + 1, startPage: null, endPage: null }, // prettier-ignore
  };
});
const itemOf = (index: number): PackItem => ({
  ...chunks[index]!,
  kind: 'document',
  neighbours: chunks.filter(({ position }) => Math.abs(position.index - index) === 1),
});

test('[SE4] a chunk names its document and place, and neighbours without their overlap fill the budget', () => {
  const small = packContext([itemOf(1)], { tokenBudget: 30, countTokens });
  expect(small.text).toBe(`[1] greek.md, line 2 › Letters\n  ${chunks[1]!.text}\n`);
  expect(small.sources[0]!.position).toMatchObject({ name: 'greek.md', startChar: 30, endChar: 70, startLine: 2 });
  const large = packContext([itemOf(1)], { tokenBudget: 1000, countTokens });
  expect(large.text).toBe(`[1] greek.md, lines 1–3 › Letters\n  ${TEXT}\n`);
  expect(large.sources).toHaveLength(1);
  expect(large.sources[0]!.position).toMatchObject({ startChar: 0, endChar: TEXT.length, startLine: 1, endLine: 3 });
});

test('[SE4] only a document has words beside its number that further lines follow', () => {
  const pack = (item: PackItem) => packContext([item], { tokenBudget: 1000, countTokens }).text;
  expect(pack({ id: 'a', kind: 'fact', text: 'greek.md, line 2 › Letters\nObey.' })).toBe(
    '[1]\n  greek.md, line 2 › Letters\n  Obey.\n',
  );
  const item = itemOf(1);
  const named = { ...item, position: { ...item.position!, name: 'a\n[2] b' }, neighbours: [] };
  expect(pack(named)).toBe(`[1] a [2] b, line 2 › Letters\n  ${chunks[1]!.text}\n`);
});

test('[SE4] adjacent results are one source', () => {
  const { sources, text } = packContext([itemOf(1), itemOf(2), itemOf(0)], { tokenBudget: 1000, countTokens });
  expect([sources.length, text.match(/Gamma/g)!.length]).toEqual([1, 1]);
});

test('[SE4] a text over the budget is cut to the part that the question is about', () => {
  const sentences = Array.from({ length: 200 }, (_, i) => `Sentence number ${i} is about something else.`);
  const text = sentences.toSpliced(150, 0, 'The library opens at nine.').join(' ');
  const query = 'When does the library open?';
  const { sources, text: packed, numTokens } = packContext([{ id: 'a', kind: 'document', text }], { tokenBudget: 60, countTokens, query }); // prettier-ignore
  expect(packed).toContain('The library opens at nine.');
  expect(sources).toMatchObject([{ isCut: true }]);
  expect([numTokens <= 60, numTokens > 40]).toEqual([true, true]);
  expect(packContext([{ id: 'a', kind: 'document', text }], { tokenBudget: 10, countTokens, query })).toMatchObject({ sources: [], numLeftOut: 1 }); // prettier-ignore
});

test('[SE4] the whole text never has more tokens than the budget, and its count is exact', () => {
  const text = string({ maxLength: 300, unit: 'grapheme' });
  assert(
    property(array(text, { maxLength: 6 }), integer({ min: 1, max: 200 }), text, (texts, tokenBudget, query) => {
      const items = [...texts.map((words, i): PackItem => ({ id: `t${i}`, kind: 'fact', text: words })), itemOf(0), itemOf(2)]; // prettier-ignore
      const packed = packContext(items, { tokenBudget, countTokens, query });
      expect(packed.numTokens).toBe(countTokens(packed.text));
      expect(packed.numTokens).toBeLessThanOrEqual(tokenBudget);
      expect(packed.sources.map(({ number }) => number)).toEqual(packed.sources.map((_, i) => i + 1));
    }),
    { seed: 18, numRuns: 500 },
  );
});

describe('[SE4] the budget is used to its last token', () => {
  const count = (text: string): number => text.length;
  const factOf = (id: string, text: string): PackItem => ({ id, kind: 'fact', text });

  test('a long text is cut where the budget ends, whatever its number', () => {
    const short = Array.from({ length: 9 }, (_, i) => factOf(`s${i}`, 'x'));
    for (const before of [0, 9]) {
      const tokenBudget = 60 + 6 * before;
      const items = [...short.slice(0, before), factOf('long', 'a'.repeat(100))];
      const packed = packContext(items, { tokenBudget, countTokens: count });
      expect([packed.numTokens, packed.sources.length, packed.numLeftOut]).toEqual([tokenBudget, before + 1, 0]);
    }
  });

  test('a part of 16 tokens is shown, a shorter one is not', () => {
    const pack = (tokenBudget: number) =>
      packContext([factOf('a', 'a'.repeat(100))], { tokenBudget, countTokens: count });
    expect(pack(5 + 16).text).toBe(`[1] ${'a'.repeat(16)}\n`);
    expect(pack(5 + 15)).toMatchObject({ text: '', numTokens: 0, numLeftOut: 1 });
  });

  test('only one text is cut', () => {
    const sentence = `${'b'.repeat(98)}. `;
    const packed = packContext([factOf('a', sentence.repeat(2)), factOf('b', sentence.repeat(2))], { tokenBudget: 160, countTokens: count }); // prettier-ignore
    expect(packed.sources).toMatchObject([{ id: 'a', isCut: true }]);
    expect(packed.numLeftOut).toBe(1);
  });

  test('a text of more than 16 characters per token is cut before its tokens are counted', () => {
    const pack = (numChars: number) => packContext([factOf('a', 'a'.repeat(numChars))], { tokenBudget: 17, countTokens: () => 1 }); // prettier-ignore
    expect(pack(17 * 16).sources).toMatchObject([{ isCut: false }]);
    expect(pack(17 * 16 + 1)).toMatchObject({ text: `[1] ${'a'.repeat(17 * 16)}\n`, sources: [{ isCut: true }] });
  });

  test('the last sources go if all together have more tokens than their sum', () => {
    const dear = (text: string): number => text.length + (text.includes('[2]') && text.includes('[1]') ? 100 : 0);
    const packed = packContext([factOf('a', 'a'), factOf('b', 'b')], { tokenBudget: 50, countTokens: dear });
    expect(packed).toMatchObject({ text: '[1] a\n', numTokens: 6, numLeftOut: 1 });
  });
});

describe('[SE4] chunks of one document', () => {
  const pack = (items: readonly PackItem[], tokenBudget = 1000) =>
    packContext(items, { tokenBudget, countTokens: (text) => text.length });
  const alone = (index: number, place = {}): PackItem => {
    const { position, ...rest } = chunks[index]!;
    return { ...rest, kind: 'document', position: { ...position, ...place } };
  };
  const idsOf = ({ sources }: ReturnType<typeof pack>): string[] => sources.map(({ id }) => id);

  test('are one source where they overlap or repeat, and several where they do not', () => {
    const fact: PackItem = { id: 'fact', kind: 'fact', text: 'a fact' };
    expect(idsOf(pack([alone(1), alone(1)]))).toEqual(['chunk1']);
    expect(idsOf(pack([alone(0), alone(1), alone(0), alone(1)]))).toEqual(['chunk0']);
    expect(idsOf(pack([alone(0), alone(2)]))).toEqual(['chunk0', 'chunk2']);
    expect(idsOf(pack([fact, alone(0), alone(1, { documentId: 'other' })]))).toEqual(['fact', 'chunk0', 'chunk1']);
  });

  test('join as long as the budget allows', () => {
    const whole = `[1] greek.md, lines 2–3 › Letters\n  ${TEXT.slice(30)}\n`;
    expect(pack([alone(1), alone(2)], whole.length).text).toBe(whole);
    expect(pack([alone(1), alone(2)], whole.length - 1)).toMatchObject({ sources: [{ id: 'chunk1' }], numLeftOut: 1 });
  });

  test('have a line between them only if something of the document is', () => {
    const place = (start: number) => ({ start, end: start + 4 });
    const parts = (startOfSecond: number) =>
      [0, 1].map((i) => ({ ...alone(i, place(i * startOfSecond)), text: ['One.', 'Two.'][i]! }));
    expect(pack(parts(4)).text).toContain('One.Two.');
    expect(pack(parts(6)).text).toContain('One.\n  Two.');
    expect(pack(parts(6).toReversed()).text).toContain('One.\n  Two.');
    expect(pack(parts(4).toReversed()).text).toContain('One.Two.');
  });

  test('have the lines of the part that is shown, if the file has the lines of its text', () => {
    const text = ['The first line of three.', 'The second line is it.', 'The third line of all.'].join('\n');
    const lines = (place: object) => {
      const item = { ...alone(0, { start: 100, end: 100 + text.length, ...place }), text };
      const { sources } = packContext([item], { tokenBudget: 70, countTokens: (words) => words.length, query: 'second' }); // prettier-ignore
      const { startLine, endLine, startPage, startChar, endChar } = sources[0]!.position!;
      expect([startChar, endChar, sources[0]!.isCut]).toEqual([125, 147, true]);
      return [startLine, endLine, startPage];
    };
    expect(lines({ startLine: 10, endLine: 12 })).toEqual([11, 11, null]);
    expect(lines({ startLine: 10, endLine: 13 })).toEqual([10, 13, null]);
    expect(lines({ startLine: null, endLine: null, startPage: 7, endPage: 9 })).toEqual([null, null, 7]);
  });
});
