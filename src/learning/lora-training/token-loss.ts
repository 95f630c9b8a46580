import type { Random } from '../../core/random.ts';

/** The logits of one token: values of part i are a slice of `parts[i].values` from `start` on, tokens from `firstId` on. */
export interface LogitPart {
  readonly values: Float32Array;
  readonly start: number;
  readonly firstId: number;
  readonly count: number;
}

/** A probability of 1 − this or more counts as this: the loss of a rejected token is at most −log of it, 13.8. */
const LEAST_REST = 1e-6;

/** What a token's logits say, before gradients overwrite them. */
export interface TokenLoss {
  readonly loss: number;
  readonly max: number;
  readonly sumExp: number;
  /** Of the label. */
  readonly probability: number;
  /** 1 − probability, from the other logits: the difference would lose its digits. */
  readonly rest: number;
}

/** −log p(label), or for a rejected token −log(1 − p(label)). */
export function tokenLoss(parts: readonly LogitPart[], label: number, isRejected: boolean): TokenLoss {
  let max = -Infinity;
  for (const { values, start, count } of parts) {
    for (let i = start; i < start + count; i++) if (values[i]! > max) max = values[i]!;
  }
  let [others, own] = [0, 0];
  for (const { values, start, count, firstId } of parts) {
    for (let i = 0; i < count; i++) others += Math.exp(values[start + i]! - max);
    if (label >= firstId && label < firstId + count) own = values[start + label - firstId]!;
  }
  const ownExp = Math.exp(own - max);
  const sumExp = others;
  let rest = 0;
  if (ownExp > 0.5 * sumExp) {
    for (const { values, start, count, firstId } of parts) {
      for (let i = 0; i < count; i++) if (firstId + i !== label) rest += Math.exp(values[start + i]! - max);
    }
    rest /= sumExp;
  } else rest = 1 - ownExp / sumExp;
  const loss = isRejected ? -Math.log(Math.max(LEAST_REST, rest)) : Math.log(sumExp) + max - own;
  return { loss, max, sumExp, probability: ownExp / sumExp, rest };
}

/** Overwrites the logits with the gradient of the loss times `factor`. */
export function lossBackward(
  parts: readonly LogitPart[],
  label: number,
  { max, sumExp, probability, rest }: TokenLoss,
  isRejected: boolean,
  factor: number,
): void {
  // d −log(1−p)/dz = p/(1−p) · (label − softmax): of the label p, of all others together −p, so it stays bounded as p nears 1.
  const slope = isRejected ? (-factor * probability) / Math.max(LEAST_REST, rest) : factor;
  const ofLabel = isRejected ? factor * probability : -factor * rest;
  for (const { values, start, count, firstId } of parts) {
    for (let i = start; i < start + count; i++) values[i] = (slope * Math.exp(values[i]! - max)) / sumExp;
    if (label >= firstId && label < firstId + count) values[start + label - firstId] = ofLabel;
  }
}

/** A token drawn from the distribution the logits describe. */
export function drawLabel(parts: readonly LogitPart[], { max, sumExp }: TokenLoss, random: Random): number {
  let left = random.next() * sumExp;
  let last = 0;
  for (const { values, start, count, firstId } of parts) {
    for (let i = 0; i < count; i++) {
      const share = Math.exp(values[start + i]! - max);
      if (share === 0) continue;
      last = firstId + i;
      left -= share;
      if (left < 0) return last;
    }
  }
  return last;
}
