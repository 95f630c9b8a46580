import { array, assert, integer, property, string } from 'fast-check';
import { expect, test } from 'vitest';
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
