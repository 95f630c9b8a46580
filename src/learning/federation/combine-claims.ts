import { confidenceOf } from '../reasoning-bank/pattern.ts';
import type { Sample } from '../reasoning-bank/welch.ts';
import { clamp, trimmedMean } from './robust-mean.ts';

/** The figures of a pattern from all nodes that have it. */
export interface CombinedClaim {
  /** Mean quality, 0 to 1. */
  readonly rating: number;
  readonly confidence: number;
}

/** How far peers move the rating and the confidence of an own pattern. */
export const MAX_SHIFT = 0.2;
/** Confidence in a pattern without own requests. */
export const MAX_FOREIGN_CONFIDENCE = 0.5;
/** Requests of a peer that count. */
export const MAX_CLAIMED = 100;

/** Confidence that a sample gives to a rating: less if it says something else. */
const supportOf = ({ count, mean, variance }: Sample, rating: number): number =>
  confidenceOf({ count: Math.min(count, MAX_CLAIMED), mean, variance }) * (1 - Math.abs(mean - rating));

/** Every node has one vote, whatever it claims to have counted; peers move the result by `MAX_SHIFT` at most. */
export function combineClaims(own: Sample, ownConfidence: number, peers: readonly Sample[]): CombinedClaim {
  const near = (value: number, votes: readonly number[]): number =>
    clamp(clamp(trimmedMean([value, ...votes]), value - MAX_SHIFT, value + MAX_SHIFT), 0, 1);
  return {
    rating: near(own.mean, peers.map(({ mean }) => mean)), // prettier-ignore
    confidence: near(ownConfidence, peers.map((one) => supportOf(one, own.mean))), // prettier-ignore
  };
}

/** Of a pattern that only peers have. */
export function combineForeign(peers: readonly Sample[]): CombinedClaim {
  const rating = trimmedMean(peers.map(({ mean }) => mean));
  const confidence = trimmedMean(peers.map((one) => supportOf(one, rating)));
  return { rating, confidence: Math.min(MAX_FOREIGN_CONFIDENCE, confidence) };
}
