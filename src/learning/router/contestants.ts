import { type KnnOptions, trainKnn } from './baselines/knn.ts';
import { LINEAR_DEFAULTS, type LinearOptions, trainLinear } from './baselines/linear.ts';
import { type LogisticOptions, trainLogistic } from './baselines/logistic.ts';
import { LENGTH_ONLY, lengthPriorOf, RIDGE_DEFAULTS, type RidgeOptions, trainRidge } from './baselines/ridge.ts';
import type { Contestant } from './select-best.ts';

export interface ContestantOptions {
  readonly numCandidates: number;
  readonly numBuckets: number;
  /** By candidate, in any unit; only the order counts. Default: all the same. */
  readonly costs?: readonly number[];
  /** Whether all examples have sentence vectors. Default false. */
  readonly hasVectors?: boolean;
  readonly linear?: LinearOptions;
  readonly knn?: KnnOptions;
  readonly logistic?: LogisticOptions;
}

/**
 * All estimators that read the request, simplest first, because a simpler one wins unless another is surely better. k-NN keeps every
 * example, so it comes after all weights of words; those that need the sentence encoder come last. None stops early: all train on the
 * validation part, too.
 */
export function contestantsOf({
  numCandidates,
  numBuckets,
  costs = [],
  hasVectors = false,
  linear = LINEAR_DEFAULTS,
  knn,
  logistic,
}: ContestantOptions): Contestant[] {
  const nearest: Contestant = {
    name: 'k-NN',
    train: (...all) => trainKnn(all.flat(), numCandidates, knn),
    needsVector: hasVectors,
  };
  const lengthPrior = lengthPriorOf(costs.length === 0 ? Array.from({ length: numCandidates }, () => 0) : costs);
  const ridge = (name: string, options: RidgeOptions): Contestant => ({
    name,
    train: (...all) => trainRidge(all.flat(), numCandidates, { ...options, lengthPrior, name }),
    needsVector: options.isByVector ?? false,
  });
  return [
    ridge('length', LENGTH_ONLY),
    { name: 'linear', train: (...all) => trainLinear(all.flat(), numCandidates, numBuckets, linear) },
    ridge('ridge', RIDGE_DEFAULTS),
    ridge('cosine ridge', { ...RIDGE_DEFAULTS, isScaled: false }),
    ...(hasVectors
      ? [
          nearest,
          ridge('vector ridge', { ...RIDGE_DEFAULTS, isScaled: false, isByVector: true }),
          { name: 'logistic', train: (...all: Parameters<Contestant['train']>) => trainLogistic(all.flat(), numCandidates, logistic), needsVector: true }, // prettier-ignore
        ]
      : [nearest]),
  ];
}
