import { z } from 'zod';
import { RuvLLMError } from '../../core/errors.ts';
import { groupBy } from '../../memory/common/group-by.ts';
import { clipText } from '../../memory/common/text-limits.ts';
import { name, text, unit } from '../../memory/schemas/primitives.ts';
import type { Pattern } from '../reasoning-bank/pattern.ts';
import type { Sample } from '../reasoning-bank/welch.ts';
import { clamp } from './robust-mean.ts';
import { packVector, unpack, unpackVector } from './packing.ts';

/** Patterns of one bundle, the most valuable ones. */
export const MAX_SHARED_PATTERNS = 500;
const MAX_DIM = 8192;
const MAX_TEXT = 1200;

const sharedPattern = z.strictObject({
  /** i8[dim], in base64. */
  vector: z.string().max(Math.ceil(MAX_DIM / 3) * 4),
  /** Rated requests, their mean quality and its variance: of values from 0 to 1 it is at most ½. */
  count: z.int().min(1).max(1_000_000),
  quality: unit,
  variance: z.number().min(0).max(0.5),
  /** Question and answer; only if the sender allows it. */
  text: text(MAX_TEXT).optional(),
});

/** Patterns of a node's reasoning bank. */
export const patternEvidence = z.strictObject({
  /** Of the vectors. */
  space: name,
  dim: z.int().min(1).max(MAX_DIM),
  patterns: z.array(sharedPattern).max(MAX_SHARED_PATTERNS),
});
export type PatternEvidence = z.infer<typeof patternEvidence>;

/** A pattern of a peer. */
export interface PeerPattern {
  /** Of length 1. */
  readonly vector: Float32Array;
  readonly quality: Sample;
  readonly text: string | null;
}

const valueOf = ({ confidence, support }: Pattern): number => confidence * Math.log1p(support);

/** The most valuable patterns of the space with the most of them; null: there are none. */
export function toPatternEvidence(patterns: readonly Pattern[], { texts = false } = {}): PatternEvidence | null {
  const spaces = groupBy(patterns, ({ space }) => space);
  const [largest] = [...spaces].sort(([, a], [, b]) => b.length - a.length);
  if (largest === undefined) return null;
  const [space, all] = largest;
  const best = all.toSorted((a, b) => valueOf(b) - valueOf(a)).slice(0, MAX_SHARED_PATTERNS);
  return {
    space,
    dim: best[0]!.embedding.length,
    patterns: best.map(({ embedding, quality, text: words }) => ({
      vector: packVector(embedding),
      count: quality.count,
      quality: clamp(quality.mean, 0, 1),
      variance: clamp(quality.variance, 0, 0.5),
      ...(texts ? { text: clipText(words, MAX_TEXT).text } : {}),
    })),
  };
}

/** Throws for vectors of another length. */
export function checkPatternEvidence({ dim, patterns }: PatternEvidence): void {
  for (const [i, { vector }] of patterns.entries()) {
    const { length } = unpack(vector, 'vector', 1);
    if (length !== dim)
      throw new RuvLLMError('invalid_option', `bundle: the vector of pattern ${i} has ${length} numbers, not ${dim}`);
  }
}

export const fromPatternEvidence = ({ patterns }: PatternEvidence): PeerPattern[] =>
  patterns.map(({ vector, count, quality: mean, variance, text: words = null }) => ({
    vector: unpackVector(vector),
    quality: { count, mean, variance },
    text: words,
  }));
