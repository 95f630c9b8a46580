import { trainBandit } from './baselines/bandit.ts';
import { createConstant } from './baselines/constant.ts';
import { trainKeyword } from './baselines/keyword.ts';
import { type KnnOptions, trainKnn } from './baselines/knn.ts';
import { LINEAR_DEFAULTS, type LinearOptions, trainLinear } from './baselines/linear.ts';
import { type MlpOptions, trainMlpSteps } from './baselines/mlp.ts';
import { RIDGE_DEFAULTS, trainRidge } from './baselines/ridge.ts';
import type { UtilityWeights } from './candidates.ts';
import { createFastGrnn, type Judge } from './fastgrnn/fastgrnn-estimator.ts';
import { type FastGrnnOptions, trainFastGrnnSteps } from './fastgrnn/train.ts';
import type { TrainerSteps } from './cross-fit.ts';
import type { Contestant } from './select-best.ts';
import { runSteps } from './steps.ts';
import type { Candidate } from './types.ts';

export interface ContestantOptions {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly costs: readonly number[];
  readonly numBuckets: number;
  readonly linear?: LinearOptions;
  readonly knn?: KnnOptions;
  readonly mlp?: MlpOptions;
  readonly fastGrnn?: FastGrnnOptions;
  readonly judge?: Judge;
  readonly penaltyGradient?: (params: Float32Array, out: Float32Array) => void;
}

const inSteps = (name: string, steps: TrainerSteps): Contestant => ({
  name,
  steps,
  train: (...parts) => runSteps(steps(...parts)),
});

/** All ways to choose, simplest first: among equals the simplest wins. What does not stop early learns from the validation part, too. */
export function contestantsOf(options: ContestantOptions): Contestant[] {
  const { candidates, weights, costs, numBuckets } = options;
  const count = candidates.length;
  const penalty = options.penaltyGradient === undefined ? {} : { penaltyGradient: options.penaltyGradient };
  return [
    { name: 'always-small', train: () => createConstant('always-small', costs.indexOf(Math.min(...costs)), count) },
    { name: 'always-large', train: () => createConstant('always-large', costs.indexOf(Math.max(...costs)), count) },
    { name: 'keyword', train: (...all) => trainKeyword(all.flat(), count) },
    { name: 'k-NN', train: (...all) => trainKnn(all.flat(), count, options.knn) },
    {
      name: 'linear',
      train: (...all) => trainLinear(all.flat(), count, numBuckets, options.linear ?? LINEAR_DEFAULTS),
    },
    { name: 'ridge', train: (...all) => trainRidge(all.flat(), count) },
    {
      name: 'cosine ridge',
      train: (...all) => trainRidge(all.flat(), count, { ...RIDGE_DEFAULTS, isScaled: false }),
    },
    { name: 'bandit', train: (...all) => trainBandit(all.flat(), count) },
    inSteps('MLP', (train, validation) => trainMlpSteps(train, validation, count, options.mlp)),
    inSteps('FastGRNN', function* trainNetwork(train, validation) {
      const own = { candidates, weights, train, validation, options: options.fastGrnn ?? {}, ...penalty };
      const trained = yield* trainFastGrnnSteps(own);
      return createFastGrnn({ ...trained, numCandidates: count }, options.judge);
    }),
  ];
}
