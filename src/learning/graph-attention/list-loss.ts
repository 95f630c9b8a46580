import type { Use } from './types.ts';

/** Distance of the scores from an order with all used candidates first. */
export interface ListLoss {
  readonly loss: number;
  /** [count], of the scores. */
  readonly slopes: Float64Array;
}

/**
 * Cross-entropy between the softmax of the scores and an equal share for each used candidate (ListNet's top-one loss), over candidates
 * whose use is known.
 */
export function listLoss(scores: Float64Array, used: readonly Use[]): ListLoss {
  const share = 1 / used.filter(Boolean).length;
  const max = scores.reduce((best, score, i) => (used[i] === null ? best : Math.max(best, score)), -Infinity);
  const slopes = scores.map((score, i) => (used[i] === null ? 0 : Math.exp(score - max)));
  const sum = slopes.reduce((total, value) => total + value, 0);
  const logSum = max + Math.log(sum);
  let loss = 0;
  for (let i = 0; i < scores.length; i++) {
    slopes[i]! /= sum;
    if (!used[i]) continue;
    loss += share * (logSum - scores[i]!);
    slopes[i]! -= share;
  }
  return { loss, slopes };
}

/** Lists in which all or no candidates were used teach nothing. */
export function isInformative(used: readonly Use[]): boolean {
  return used.includes(true) && used.includes(false);
}
