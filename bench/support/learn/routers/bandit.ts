import type { Estimator } from '../../../../src/learning/router/estimator.ts';
import { NUM_FEATURES, type RouteExample, type RouteInput } from '../../../../src/learning/router/types.ts';

export interface BanditOptions {
  /** Width of the confidence bound; 0 only exploits. */
  readonly optimism: number;
  readonly ridge: number;
}

export const BANDIT_DEFAULTS: BanditOptions = { optimism: 0.1, ridge: 30 };
/** The features of the whole text and a constant. */
const SIZE = NUM_FEATURES + 1;

interface Arms {
  /** f32[numCandidates × SIZE × SIZE]: inverse of ridge·I + Σ x·xᵀ. */
  readonly inverse: Float32Array;
  /** f32[numCandidates × SIZE]: Σ reward·x. */
  readonly rewards: Float32Array;
}

function featuresOf(input: RouteInput): Float64Array {
  const features = new Float64Array(SIZE);
  features.set(input.features);
  // As long as all other features together, so that the ridge does not pull the mean to zero.
  features[SIZE - 1] = 10;
  return features;
}

function createLinUcb({ inverse, rewards }: Arms, options: BanditOptions): Estimator {
  const numCandidates = rewards.length / SIZE;
  const transformed = new Float64Array(SIZE);
  const transform = (arm: number, x: Float64Array): void => {
    for (let i = 0; i < SIZE; i++) {
      const row = (arm * SIZE + i) * SIZE;
      let sum = 0;
      for (let j = 0; j < SIZE; j++) sum += inverse[row + j]! * x[j]!;
      transformed[i] = sum;
    }
  };
  const learn = (arm: number, x: Float64Array, reward: number): void => {
    transform(arm, x);
    let denominator = 1;
    for (let i = 0; i < SIZE; i++) denominator += x[i]! * transformed[i]!;
    for (let i = 0; i < SIZE; i++) {
      const row = (arm * SIZE + i) * SIZE;
      const share = transformed[i]! / denominator;
      for (let j = 0; j < SIZE; j++) inverse[row + j]! -= share * transformed[j]!;
      rewards[arm * SIZE + i]! += reward * x[i]!;
    }
  };
  return {
    name: 'bandit',
    estimate(input) {
      const x = featuresOf(input);
      const qualities = Float64Array.from({ length: numCandidates }, (_, arm) => {
        transform(arm, x);
        let [mean, variance] = [0, 0];
        for (let i = 0; i < SIZE; i++) {
          mean += transformed[i]! * rewards[arm * SIZE + i]!;
          variance += transformed[i]! * x[i]!;
        }
        return mean + options.optimism * Math.sqrt(Math.max(0, variance));
      });
      return { qualities, confidence: NaN, why: { kind: 'best', detail: 'upper confidence bound' } };
    },
    update: ({ input, candidate, quality }) => learn(candidate, featuresOf(input), quality),
    save: () => ({ kind: 'bandit', numbers: { ...options }, arrays: { inverse, rewards } }),
  };
}

/** LinUCB (Li et al. 2010): learns only from outcomes of tried candidates, one at a time. */
export function createBandit(numCandidates: number, options: BanditOptions = BANDIT_DEFAULTS): Estimator {
  const inverse = new Float32Array(numCandidates * SIZE * SIZE);
  for (let arm = 0; arm < numCandidates; arm++)
    for (let i = 0; i < SIZE; i++) inverse[(arm * SIZE + i) * SIZE + i] = 1 / options.ridge;
  return createLinUcb({ inverse, rewards: new Float32Array(numCandidates * SIZE) }, options);
}

/** A bandit trained on the examples in order, seeing only the outcome of its choice. */
export function trainBandit(
  examples: readonly RouteExample[],
  numCandidates: number,
  options?: BanditOptions,
): Estimator {
  const bandit = createBandit(numCandidates, options);
  for (const { input, outcomes } of examples) {
    const { qualities } = bandit.estimate(input);
    let candidate = -1;
    for (let i = 0; i < numCandidates; i++)
      if (!Number.isNaN(outcomes[i]!) && (candidate < 0 || qualities[i]! > qualities[candidate]!)) candidate = i;
    if (candidate >= 0) bandit.update({ input, candidate, quality: outcomes[candidate]!, propensity: 1 });
  }
  return bandit;
}
