import { createBestHits } from '../vector-index/best-hits.ts';
import { inverseFrequency, maxTermScore } from './bm25.ts';
import type { LexicalIndex, RowTest, WeightedTerm } from './lexical-index.ts';
import { termsOf } from './terms.ts';

export interface LexicalHit {
  readonly row: number;
  /** The BM25 score divided by the highest that a text could have for the query: 0 to 1. */
  readonly score: number;
}

/** Terms of a query that count: a long prompt has hundreds, and its rarest ones decide. */
const MAX_QUERY_TERMS = 64;

/** Of the words that a follow-up question refers to: they say what it is about, but not what it asks. */
export const CONTEXT_WEIGHT = 0.5;

/** A search by words. */
export interface LexicalQuery {
  readonly text: string;
  /** Its words count half. Default: none. */
  readonly context?: string;
}

/** All terms of a query. */
export const queryTerms = ({ text, context = '' }: LexicalQuery): ReadonlySet<string> =>
  new Set([...termsOf(text), ...termsOf(context)]);

/** The terms of a query with their weights, and the highest score a text could have. Absent terms count, because they do not match. */
export function weighTerms(
  query: LexicalQuery,
  numTexts: number,
  numTextsWith: (term: string) => number,
): { readonly terms: readonly WeightedTerm[]; readonly maxScore: number } {
  const asked = new Set(termsOf(query.text));
  const weighted = [...queryTerms(query)].map((term) => {
    const count = numTextsWith(term);
    const weight = asked.has(term) ? 1 : CONTEXT_WEIGHT;
    return { term, count, idf: weight * inverseFrequency(numTexts, count) };
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
  query: LexicalQuery,
  k: number,
): readonly LexicalHit[] {
  const sum = (count: (index: LexicalIndex) => number): number =>
    indexes.reduce((total, { index }) => total + count(index), 0);
  const numTexts = sum(({ size }) => size);
  if (numTexts === 0) return [];
  const averageLength = sum(({ numTerms }) => numTerms) / numTexts;
  const { terms, maxScore } = weighTerms(query, numTexts, (term) => sum((index) => index.numTextsWith(term)));
  const best = createBestHits(k);
  for (const { index, filter } of indexes) index.offerBest(terms, averageLength, best, filter);
  return best.sorted().map(({ key: row, score }) => ({ row, score: score / maxScore }));
}
