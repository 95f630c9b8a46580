import { isTrusted, type MatchedRecord, type MemoryRecord, type NearRecord } from '../types.ts';
import { recordText } from './record-text.ts';

export interface MemoryResult {
  readonly record: MemoryRecord;
  readonly text: string;
  /** Similarity plus lexical score, decayed score of the record it was reached from, or re-ranked score; with the boost by ratings. */
  readonly score: number;
  /** Cosine similarity to the query; null: no vector in this space, or not among the nearest. */
  readonly similarity: number | null;
  /** Share of the query's words that match, weighted by BM25: 0 to 1; null: none, or not among the best. */
  readonly lexical: number | null;
  /** 0: found by similarity or words. */
  readonly hops: number;
}

/**
 * From this lexical score on, words alone make a result, whatever its similarity: a text of usual length with all words of the
 * query has 0.45. In the conversations of the recall benchmark, 1 of 100 unrelated questions has a text with 0.2.
 */
export const STRONG_LEXICAL = 0.25;

/**
 * Joins the nearest and the best matching records. The score is the sum of similarity and lexical score: of the weights that do
 * well on all sets of the recall benchmark, the simplest. A record that is not among the nearest counts as near as the last of them.
 */
export function fuse(
  near: readonly NearRecord[],
  matches: readonly MatchedRecord[],
  minSimilarity: number,
): MemoryResult[] {
  const lexicalScores = new Map(matches.map(({ record, score }) => [record.id, score]));
  const nearIds = new Set(near.map(({ record }) => record.id));
  const furthest = near.at(-1)?.similarity ?? 0;
  const toResult = (record: MemoryRecord, similarity: number | null): MemoryResult => {
    const lexical = lexicalScores.get(record.id) ?? null;
    const score = (similarity ?? furthest) + (lexical ?? 0);
    return { record, text: recordText(record), score, similarity, lexical, hops: 0 };
  };
  const results = [
    ...near.map(({ record, similarity }) => toResult(record, similarity)),
    ...matches.filter(({ record }) => !nearIds.has(record.id)).map(({ record }) => toResult(record, null)),
  ];
  if (minSimilarity === -1) return results;
  return results.filter(
    ({ similarity, lexical }) => (similarity ?? -1) >= minSimilarity || (lexical ?? 0) >= STRONG_LEXICAL,
  );
}

/** The best first; unrated answers of the model come after everything else. */
export function inOrder(results: readonly MemoryResult[]): readonly MemoryResult[] {
  return results.toSorted(
    (a, b) =>
      Number(isTrusted(b.record)) - Number(isTrusted(a.record)) ||
      b.score - a.score ||
      (a.record.id < b.record.id ? -1 : 1),
  );
}

/** Each record once, with its best score. */
export function bestOfEach(results: readonly MemoryResult[]): readonly MemoryResult[] {
  const best = new Map<string, MemoryResult>();
  for (const one of inOrder(results)) if (!best.has(one.record.id)) best.set(one.record.id, one);
  return [...best.values()];
}
