import type { Regularizer } from '../lora-training/train-lora.ts';
import { checkVector } from './fisher.ts';

/** A finished task: the parameters that were good for it, and how much each of them mattered. */
export interface EwcTask {
  readonly anchor: Float32Array;
  readonly fisher: Float32Array;
}

/** Losses of held-out examples of earlier tasks before and after a run. */
export interface EarlierLosses {
  readonly before: number;
  readonly after: number;
}

const LAMBDA_UP = 1.1;
const LAMBDA_DOWN = 0.9;
/** Losses closer than this share of the first count as equal: held-out sets are small. */
const STABLE_SHARE = 0.01;

/** Elastic weight consolidation: the slope of λ/2 · Σ over tasks of F·(θ − θ*)². */
export function createEwc(numParameters: number, tasks: readonly EwcTask[], lambda: number): Regularizer {
  for (const [i, { anchor, fisher }] of tasks.entries()) {
    checkVector(`the parameters of task ${i}`, anchor, numParameters);
    checkVector(`the Fisher information of task ${i}`, fisher, numParameters);
  }
  return {
    addPenaltyGradient(parameters, gradient) {
      for (const { anchor, fisher } of tasks) {
        for (let i = 0; i < numParameters; i++) gradient[i]! += lambda * fisher[i]! * (parameters[i]! - anchor[i]!);
      }
    },
  };
}

/** λ × 1.1 after earlier tasks got worse, × 0.9 while they are stable, within its bounds; unchanged without a measurement. */
export function adaptLambda(
  lambda: number,
  losses: EarlierLosses | null,
  { minLambda, maxLambda }: { readonly minLambda: number; readonly maxLambda: number },
): number {
  if (losses === null) return lambda;
  const isWorse = losses.after > losses.before + Math.abs(losses.before) * STABLE_SHARE;
  return Math.min(maxLambda, Math.max(minLambda, lambda * (isWorse ? LAMBDA_UP : LAMBDA_DOWN)));
}
