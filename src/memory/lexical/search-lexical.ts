import { createBestHits } from '../vector-index/best-hits.ts';
import { inverseFrequency, maxTermScore } from './bm25.ts';
import type { LexicalIndex, WeightedTerm } from './lexical-index.ts';
import { termsOf } from './terms.ts';

/** Which rows pass a filter. */
export interface RowTest {
  has(row: number): boolean;
}

export interface LexicalHit {
  readonly row: number;
  /** The BM25 score divided by the highest that a text could have for the query: 0 to 1. */
  readonly score: number;
}

/** Terms of a query that count: a long prompt has hundreds, and its rarest ones decide. */
const MAX_QUERY_TERMS = 64;

/** The terms of a query with their weights, and the highest score a text could have. Absent terms count, because they do not match. */
export function weighTerms(
  text: string,
  numTexts: number,
  numTextsWith: (term: string) => number,
): { readonly terms: readonly WeightedTerm[]; readonly maxScore: number } {
  const weighted = [...new Set(termsOf(text))].map((term) => {
    const count = numTextsWith(term);
    return { term, count, idf: inverseFrequency(numTexts, count) };
  });
  const present = weighted.filter(({ count }) => count > 0).sort((a, b) => b.idf - a.idf);
  const counted = [...present, ...weighted.filter(({ count }) => count === 0)].slice(0, MAX_QUERY_TERMS);
  return {
    terms: present.slice(0, MAX_QUERY_TERMS),
    maxScore: counted.reduce((sum, { idf }) => sum + maxTermScore(idf), 0),
  };
}

/** The k best texts of several indexes, which share their statistics and have different rows. */
export function searchLexical(
  indexes: readonly { readonly index: LexicalIndex; readonly filter: RowTest | null }[],
  text: string,
  k: number,
): readonly LexicalHit[] {
  const sum = (count: (index: LexicalIndex) => number): number =>
    indexes.reduce((total, { index }) => total + count(index), 0);
  const numTexts = sum(({ size }) => size);
  if (numTexts === 0) return [];
  const averageLength = sum(({ numTerms }) => numTerms) / numTexts;
  const { terms, maxScore } = weighTerms(text, numTexts, (term) => sum((index) => index.numTextsWith(term)));
  const best = createBestHits(k);
  for (const { index, filter } of indexes) {
    index.score(terms, averageLength, (row, score) => {
      if (score >= best.floor && (filter === null || filter.has(row))) best.offer(row, score);
    });
  }
  return best.sorted().map(({ key: row, score }) => ({ row, score: score / maxScore }));
}
