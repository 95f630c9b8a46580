// A router that hears only good of one model goes there, and leaves it again when it hears bad.
import { importBuilt } from '../dist.ts';
import type { ModelOutcomes } from './routing-data.ts';
import { candidatesOf, encodeAll, FREE, TEXT_ONLY } from './routing-models.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');
const NUM_NEWS = 200;

export interface NewsResult {
  /** Share of other requests that go to the model. */
  readonly before: number;
  readonly afterGood: number;
  readonly afterBad: number;
}

export function measureNews(data: readonly ModelOutcomes[]): NewsResult {
  const { train, test } = encodeAll(data.slice(0, 600), data.slice(600, 900));
  const estimator = router.trainLinear(train, 2, TEXT_ONLY.numBuckets);
  const rule = { candidates: candidatesOf(['small', 'large']), weights: FREE, shrinkage: null, platt: null, safeDefault: -1, minConfidence: 0 }; // prettier-ignore
  const policy = router.createPolicy(estimator, rule);
  const share = (): number => test.filter(({ input }) => policy.decide(input).candidate === 0).length / test.length;
  const tell = (quality: number): void => {
    for (let i = 0; i < NUM_NEWS; i++) policy.update({ input: train[i]!.input, candidate: 0, quality, propensity: 1 });
  };
  const before = share();
  tell(1);
  const afterGood = share();
  tell(0);
  return { before, afterGood, afterBad: share() };
}
