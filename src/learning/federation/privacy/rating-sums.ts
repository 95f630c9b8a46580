import { hashTerm, wordsOf } from '../../router/features/hashed-terms.ts';
import { ROUTER_BUCKETS } from '../../router/index.ts';
import type { RatedRoute } from '../../router-training/rated-routes.ts';

/** The Euclidean length that a conversation adds at most, as an integer. */
export const SENSITIVITY = 64;
/** Of it, the part of the rating itself; the words share the rest. */
export const RATING_PART = SENSITIVITY / 2;
const WORDS_PART = Math.sqrt(SENSITIVITY ** 2 - RATING_PART ** 2);
/** Shorter words are in every text, and would take their share from the others. */
const MIN_WORD_CHARS = 3;

/** Numbers of a candidate: good ratings, bad ratings, then for each bucket of words the good minus the bad ones. */
export const CANDIDATE_WIDTH = 2 + ROUTER_BUCKETS;

/** Numbers that a conversation adds, by position. */
type Contribution = Map<number, number>;

const bucketsOf = (turns: readonly string[]): number[] => [
  ...new Set(wordsOf(turns.at(-1) ?? '').filter(({ length }) => length >= MIN_WORD_CHARS).map((word) => hashTerm(word) % ROUTER_BUCKETS)), // prettier-ignore
];

function addRating(sum: Contribution, { request, candidate, quality }: RatedRoute): void {
  const at = candidate * CANDIDATE_WIDTH;
  const add = (position: number, value: number): void => void sum.set(position, (sum.get(position) ?? 0) + value);
  add(at, quality * RATING_PART);
  add(at + 1, (1 - quality) * RATING_PART);
  const buckets = bucketsOf(request.turns);
  for (const bucket of buckets) add(at + 2 + bucket, ((2 * quality - 1) * WORDS_PART) / Math.sqrt(buckets.length));
}

/** Integers of at most the length of `SENSITIVITY`, whatever the conversation contains. */
function clip(sum: Contribution): Contribution {
  const length = Math.hypot(...sum.values());
  const scale = length > SENSITIVITY ? SENSITIVITY / length : 1;
  // Towards zero: rounding must not make it longer.
  return new Map([...sum].map(([position, value]) => [position, Math.trunc(value * scale)]));
}

/**
 * Sums over conversations, f64[numCandidates × CANDIDATE_WIDTH] of integers. With one conversation more or less, their Euclidean
 * distance is at most `SENSITIVITY`.
 */
export function sumRatings(examples: readonly RatedRoute[], numCandidates: number): Float64Array {
  const conversations = new Map<string, Contribution>();
  for (const example of examples) {
    const sum = conversations.get(example.group) ?? new Map<number, number>();
    addRating(sum, example);
    conversations.set(example.group, sum);
  }
  const sums = new Float64Array(numCandidates * CANDIDATE_WIDTH);
  for (const sum of conversations.values()) for (const [position, value] of clip(sum)) sums[position]! += value;
  return sums;
}
