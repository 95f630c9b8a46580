import type { NetworkLayout } from './layout.ts';

/** The target outputs of the heads; null and NaN if unknown. */
export interface Targets {
  /** Index of the best candidate, −1: unknown. */
  readonly choice: number;
  readonly choiceWeight: number;
  /** By candidate; NaN if it was not tried. */
  readonly qualities: ArrayLike<number>;
  /** By candidate: 1 / propensity. */
  readonly qualityWeights: ArrayLike<number>;
  /** Whether the network's choice was right: 1, 0 or NaN. */
  readonly confidence: number;
}

export const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
/** log(1 + e^x) without overflow. */
const softplus = (x: number): number => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));

/** Softmax of `count` outputs from `at`. */
export function softmax(outputs: ArrayLike<number>, at: number, count: number): Float64Array {
  let max = -Infinity;
  for (let i = 0; i < count; i++) max = Math.max(max, outputs[at + i]!);
  const result = Float64Array.from({ length: count }, (_, i) => Math.exp(outputs[at + i]! - max));
  const sum = result.reduce((total, value) => total + value, 0);
  return result.map((value) => value / sum);
}

function crossEntropy(
  outputs: Float64Array,
  at: number,
  count: number,
  target: number,
  weight: number,
  out: Float64Array,
): number {
  // prettier-ignore
  const probabilities = softmax(outputs, at, count);
  for (let i = 0; i < count; i++) out[at + i]! += weight * (probabilities[i]! - +(i === target));
  return -weight * Math.log(Math.max(probabilities[target]!, 1e-300));
}

function binary(outputs: Float64Array, at: number, target: number, weight: number, out: Float64Array): number {
  out[at]! += weight * (sigmoid(outputs[at]!) - target);
  return weight * (softplus(outputs[at]!) - target * outputs[at]!);
}

/** The loss of one example; writes its derivative by each output to `gradient`. */
export function lossOf(layout: NetworkLayout, outputs: Float64Array, targets: Targets, gradient: Float64Array): number {
  gradient.fill(0);
  const { numCandidates } = layout;
  let loss = 0;
  if (targets.choice >= 0)
    loss += crossEntropy(outputs, 0, numCandidates, targets.choice, targets.choiceWeight, gradient);
  for (let i = 0; i < numCandidates; i++) {
    if (!Number.isNaN(targets.qualities[i]!))
      loss += binary(outputs, layout.qualityAt + i, targets.qualities[i]!, targets.qualityWeights[i]!, gradient);
  }
  if (!Number.isNaN(targets.confidence)) loss += binary(outputs, layout.confidenceAt, targets.confidence, 1, gradient);
  return loss;
}
