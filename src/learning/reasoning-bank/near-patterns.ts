import type { NearestQuery, NearRecord } from '../../memory/types.ts';
import { BANK_SOURCE, contentsOf, type PatternWords } from './pattern.ts';
import type { NearPattern } from './pattern-table.ts';

/** A pattern near a request. */
export interface HeardPattern {
  readonly pattern: PatternWords;
  readonly similarity: number;
  /** Similarity × confidence. */
  readonly weight: number;
}

/**
 * Patterns of users may be among the nearest, and a filter would visit each record. Nearly all are the bank's: the first search reads no
 * more than required, because opening records is most of its cost; the second reads so many more.
 */
export const SPARES: readonly number[] = [0, 16];

/** Query that most likely contains k patterns of the bank. */
export function nearPatterns(k: number, spare = 0): Pick<NearestQuery, 'kinds' | 'k'> {
  return { kinds: ['pattern'], k: k + spare };
}

/** The bank's patterns among the results of `nearPatterns(k, spare)`; null: there may be nearer ones further down. */
export function pickOurs(some: readonly NearRecord[], k: number, spare = 0): readonly NearRecord[] | null {
  const ours = some.filter(({ record }) => record.fields['source'] === BANK_SOURCE);
  return ours.length >= k || some.length < k + spare ? ours.slice(0, k) : null;
}

/** The patterns among near records without vectors, by descending weight. */
export function hearPatterns(near: readonly NearRecord[], k: number): readonly HeardPattern[] | null {
  const ours = pickOurs(near, k);
  return ours === null ? null : weighPatterns(ours);
}

/** Contents and weight of patterns. */
export function weighPatterns(ours: readonly NearRecord[]): readonly HeardPattern[] {
  return byWeight(
    ours.map(({ record, similarity }) => {
      const { text, metadata } = record.body as { readonly text: string; readonly metadata: unknown };
      return { pattern: { ...contentsOf(metadata, record.id), id: record.id, text }, similarity };
    }),
  );
}

export function byWeight(some: readonly NearPattern[]): readonly HeardPattern[] {
  return some
    .map(({ pattern, similarity }) => ({ pattern, similarity, weight: similarity * pattern.confidence }))
    .sort((a, b) => b.weight - a.weight);
}
