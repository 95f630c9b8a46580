import type { NearestQuery, NearRecord } from '../../memory/types.ts';
import { BANK_SOURCE, contentsOf, type PatternWords } from './pattern.ts';

/** A pattern that has a say in something; what it is near to is known already. */
export interface HeardPattern {
  readonly pattern: PatternWords;
  readonly similarity: number;
  /** Similarity × confidence. */
  readonly weight: number;
}

/**
 * Patterns that somebody else wrote may be among the nearest, and a filter costs a look at each of them. Nearly all are ours: first
 * none more than wanted are opened, for that is most of what a search costs, then so many more.
 */
export const SPARES: readonly number[] = [0, 16];

/** What to look for so that k patterns of the bank are most likely among it. */
export function nearPatterns(k: number, spare = 0): Pick<NearestQuery, 'kinds' | 'k'> {
  return { kinds: ['pattern'], k: k + spare };
}

/** Those of the bank among what `nearPatterns(k, spare)` found; null: there may be nearer ones behind. */
export function pickOurs(some: readonly NearRecord[], k: number, spare = 0): readonly NearRecord[] | null {
  const ours = some.filter(({ record }) => record.fields['source'] === BANK_SOURCE);
  return ours.length >= k || some.length < k + spare ? ours.slice(0, k) : null;
}

/** The patterns among what is near, without their vectors; the weightiest first. */
export function hearPatterns(near: readonly NearRecord[], k: number): readonly HeardPattern[] | null {
  const ours = pickOurs(near, k);
  return ours === null ? null : weighPatterns(ours);
}

/** What patterns say, and how much each of them weighs. */
export function weighPatterns(ours: readonly NearRecord[]): readonly HeardPattern[] {
  return ours
    .map(({ record, similarity }) => {
      const { text, metadata } = record.body as { readonly text: string; readonly metadata: unknown };
      const contents = contentsOf(metadata, record.id);
      return { pattern: { ...contents, id: record.id, text }, similarity, weight: similarity * contents.confidence };
    })
    .sort((a, b) => b.weight - a.weight);
}
