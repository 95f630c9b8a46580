import type { Random } from '../../core/random.ts';

/** The logits of one token: values of part i are a slice of `parts[i].values` from `start` on, tokens from `firstId` on. */
export interface LogitPart {
  readonly values: Float32Array;
  readonly start: number;
  readonly firstId: number;
  readonly count: number;
}

/** Least value of 1 − p: the loss of a rejected token is at most −log of it, 13.8. */
const LEAST_REST = 1e-6;

export interface Softmax {
  /** log Σ exp of the logits; NaN if a logit is. */
  readonly logSumExp: number;
  /** Σ of the exponentials. */
  readonly sum: number;
}

/** Overwrites the logits with exp(logit − max), which loss and gradient share. */
export function exponentiate(parts: readonly LogitPart[]): Softmax {
  let max = -Infinity;
  for (const { values, start, count } of parts) {
    for (let i = start; i < start + count; i++) if (values[i]! > max) max = values[i]!;
  }
  let sum = 0;
  for (const { values, start, count } of parts) {
    for (let i = start; i < start + count; i++) sum += values[i] = Math.exp(values[i]! - max);
  }
  return { logSumExp: max + Math.log(sum), sum };
}

/** The value of a token. */
export function valueOf(parts: readonly LogitPart[], id: number): number {
  for (const { values, start, count, firstId } of parts) {
    if (id >= firstId && id < firstId + count) return values[start + id - firstId]!;
  }
  return NaN;
}

/** 1 − p(label), summed over the other tokens if the difference would cancel; at least `LEAST_REST`. */
export function restOf(parts: readonly LogitPart[], label: number, { sum }: Softmax): number {
  const own = valueOf(parts, label);
  if (own <= 0.5 * sum) return 1 - own / sum;
  let rest = 0;
  for (const { values, start, count, firstId } of parts) {
    for (let i = 0; i < count; i++) if (firstId + i !== label) rest += values[start + i]!;
  }
  return Math.max(LEAST_REST, rest / sum);
}

/** After `exponentiate`: overwrites with the slopes of −log p(label), or of −log(1 − p(label)), times `factor`. */
export function lossBackward(
  parts: readonly LogitPart[],
  label: number,
  softmax: Softmax,
  isRejected: boolean,
  factor: number,
): void {
  const probability = valueOf(parts, label) / softmax.sum;
  const rest = restOf(parts, label, softmax);
  // d −log(1−p)/dz = p/(1−p) · (label − softmax): p for the label, −p for all others together, so bounded as p nears 1.
  const slope = (isRejected ? (-factor * probability) / rest : factor) / softmax.sum;
  const ofLabel = isRejected ? factor * probability : -factor * rest;
  for (const { values, start, count, firstId } of parts) {
    for (let i = start; i < start + count; i++) values[i]! *= slope;
    if (label >= firstId && label < firstId + count) values[start + label - firstId] = ofLabel;
  }
}

/** After `exponentiate`: samples a token. */
export function drawLabel(parts: readonly LogitPart[], { sum }: Softmax, random: Random): number {
  let left = random.next() * sum;
  let last = 0;
  for (const { values, start, count, firstId } of parts) {
    for (let i = 0; i < count; i++) {
      const share = values[start + i]!;
      if (share === 0) continue;
      last = firstId + i;
      left -= share;
      if (left < 0) return last;
    }
  }
  return last;
}
