import type {
  Candidate,
  Contestant,
  KnnOptions,
  LinearOptions,
  UtilityWeights,
} from '../../../../src/learning/router/index.ts';
import { importBuilt } from '../../dist.ts';
import { trainBandit } from './bandit.ts';
import { createFastGrnn, type Judge } from './fastgrnn/fastgrnn-estimator.ts';
import { type FastGrnnOptions, trainFastGrnn } from './fastgrnn/train.ts';
import { trainKeyword } from './keyword.ts';
import { trainMlp } from './mlp.ts';

const router = await importBuilt<typeof import('../../../../src/learning/router/index.ts')>('learning/router/index');

export interface BenchContestantOptions {
  readonly candidates: readonly Candidate[];
  readonly weights: UtilityWeights;
  readonly costs: readonly number[];
  readonly numBuckets: number;
  readonly linear?: LinearOptions;
  readonly knn?: KnnOptions;
  /** Whether the examples have sentence vectors. Default false. */
  readonly hasVectors?: boolean;
  readonly fastGrnn?: FastGrnnOptions;
  readonly judge?: Judge;
}

/** The package's contestants and its baselines; simplest first. */
export function benchContestants(options: BenchContestantOptions): Contestant[] {
  const { candidates, weights, costs, linear, knn, numBuckets, hasVectors = false } = options;
  const count = candidates.length;
  const always = (name: string, candidate: number): Contestant => ({
    name,
    train: () => router.createConstant(name, candidate, count),
  });
  return [
    always('always-small', costs.indexOf(Math.min(...costs))),
    always('always-large', costs.indexOf(Math.max(...costs))),
    { name: 'keyword', train: (...all) => trainKeyword(all.flat(), count) },
    ...router.contestantsOf({
      numCandidates: count,
      numBuckets,
      costs,
      hasVectors,
      ...(linear === undefined ? {} : { linear }),
      ...(knn === undefined ? {} : { knn }),
    }),
    { name: 'bandit', train: (...all) => trainBandit(all.flat(), count) },
    { name: 'MLP', train: (train, validation) => trainMlp(train, validation, count) },
    {
      name: 'FastGRNN',
      train: (train, validation) => {
        const trained = trainFastGrnn({ candidates, weights, train, validation, options: options.fastGrnn ?? {} });
        return createFastGrnn({ ...trained, numCandidates: count }, options.judge);
      },
    },
  ];
}
