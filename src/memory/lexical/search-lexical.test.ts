import { expect, test } from 'vitest';
import { inverseFrequency, maxTermScore } from './bm25.ts';
import { createLexicalIndex } from './lexical-index.ts';
import { searchLexical, weighTerms } from './search-lexical.ts';

const counts: Readonly<Record<string, number>> = { heron: 2, lake: 5 };
const numTextsWith = (term: string): number => counts[term] ?? 0;

test('terms are weighed by rarity, the rarest first, those of the context half; absent ones count in the highest score only', () => {
  const { terms, maxScore } = weighTerms({ text: 'lake heron owl', context: 'lake owl sea' }, 10, numTextsWith);
  const [heron, lake, absent] = [2, 5, 0].map((count) => inverseFrequency(10, count));
  expect(terms).toMatchObject([
    { term: 'heron', idf: heron },
    { term: 'lake', idf: lake },
  ]);
  expect(maxScore).toBeCloseTo(maxTermScore(heron! + lake! + 1.5 * absent!), 12);
  expect(weighTerms({ text: 'lake', context: 'heron' }, 10, numTextsWith).terms).toMatchObject([
    { term: 'heron', idf: heron! / 2 },
    { term: 'lake', idf: lake },
  ]);
});

test('of a long query the 64 rarest terms count, those in texts first', () => {
  const text = Array.from({ length: 70 }, (_, i) => `w${i}`).join(' ');
  const { terms, maxScore } = weighTerms({ text: `nowhere ${text}` }, 100, (term) => Number(term.slice(1)) || 0);
  expect(terms.map(({ term }) => term)).toEqual(Array.from({ length: 64 }, (_, i) => `w${i + 1}`));
  expect(maxScore).toBeCloseTo(
    terms.reduce((sum, { idf }) => sum + maxTermScore(idf), 0),
    9,
  );
});

test('several indexes share their statistics, and a score is the share of the highest', () => {
  const [first, second] = [createLexicalIndex(), createLexicalIndex()];
  first.set(1, 'heron lake');
  second.set(2, 'lake sea');
  const indexes = [first, second].map((index) => ({ index, filter: null }));
  const found = searchLexical(indexes, { text: 'heron' }, 5);
  expect(found).toHaveLength(1);
  // A term that occurs once in a text of average length has 1 of at most 2.2 times its weight.
  expect(found[0]).toEqual({ row: 1, score: expect.closeTo(1 / 2.2, 12) });
  expect(searchLexical([{ index: first, filter: { has: () => false } }], { text: 'heron' }, 5)).toEqual([]);
});
