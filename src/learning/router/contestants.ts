import { type KnnOptions, trainKnn } from './baselines/knn.ts';
import { LINEAR_DEFAULTS, type LinearOptions, trainLinear } from './baselines/linear.ts';
import { RIDGE_DEFAULTS, trainRidge } from './baselines/ridge.ts';
import type { Contestant } from './select-best.ts';

export interface ContestantOptions {
  readonly numCandidates: number;
  readonly numBuckets: number;
  readonly linear?: LinearOptions;
  readonly knn?: KnnOptions;
}

/** All estimators that read the request, simplest first, because the first wins a tie. None stops early: all train on the validation part, too. */
export function contestantsOf({
  numCandidates,
  numBuckets,
  linear = LINEAR_DEFAULTS,
  knn,
}: ContestantOptions): Contestant[] {
  return [
    { name: 'k-NN', train: (...all) => trainKnn(all.flat(), numCandidates, knn) },
    { name: 'linear', train: (...all) => trainLinear(all.flat(), numCandidates, numBuckets, linear) },
    { name: 'ridge', train: (...all) => trainRidge(all.flat(), numCandidates) },
    {
      name: 'cosine ridge',
      train: (...all) => trainRidge(all.flat(), numCandidates, { ...RIDGE_DEFAULTS, isScaled: false }),
    },
  ];
}
