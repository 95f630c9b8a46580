import { CONTEXT_BUCKETS } from '../types.ts';
import type { NetworkLayout } from './layout.ts';

/** What the heads should have said; null and NaN where nothing is known. */
export interface Targets {
  /** Index of the best candidate, −1 unknown. */
  readonly choice: number;
  readonly choiceWeight: number;
  /** By candidate; NaN where it was not tried. */
  readonly qualities: ArrayLike<number>;
  /** By candidate: 1 / propensity. */
  readonly qualityWeights: ArrayLike<number>;
  readonly contextBucket: number;
  readonly temperature: number;
  readonly topP: number;
  /** Whether the network's own choice was right: 1, 0 or NaN. */
  readonly confidence: number;
}

/** Share of the sampling heads in the loss. */
const SETTING_WEIGHT = 0.1;
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

/** SmoothL1 of range·σ(output) against a target. */
function smooth(outputs: Float64Array, at: number, range: number, target: number, out: Float64Array): number {
  const s = sigmoid(outputs[at]!);
  const error = range * s - target;
  const slope = Math.max(-1, Math.min(1, error));
  out[at]! += SETTING_WEIGHT * slope * range * s * (1 - s);
  return SETTING_WEIGHT * (Math.abs(error) < 1 ? 0.5 * error * error : Math.abs(error) - 0.5);
}

/** The loss of one example; its derivative by each output replaces what is in `gradient`. */
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
  if (targets.contextBucket >= 0)
    loss += crossEntropy(outputs, layout.contextAt, CONTEXT_BUCKETS.length, targets.contextBucket, 1, gradient);
  if (!Number.isNaN(targets.temperature))
    loss += smooth(outputs, layout.temperatureAt, 2, targets.temperature, gradient);
  if (!Number.isNaN(targets.topP)) loss += smooth(outputs, layout.topPAt, 1, targets.topP, gradient);
  if (!Number.isNaN(targets.confidence)) loss += binary(outputs, layout.confidenceAt, targets.confidence, 1, gradient);
  return loss;
}
