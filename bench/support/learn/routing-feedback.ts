// From nothing by feedback alone: one decision, one outcome, again and again.
import { createRandom } from '../../../src/core/random.ts';
import type { Contestant, Estimator, RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import type { ModelOutcomes } from './routing-data.ts';
import { accuracyOf, type IntentSet } from './routing-intents.ts';
import { candidatesOf, encodeAll, FREE } from './routing-models.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');
const CHECKPOINTS = [0, 100, 300, 1000, 2000, 5000];

export interface LearningCurve {
  readonly name: string;
  /** Accuracy on the held-out fifth after so many feedbacks. */
  readonly points: readonly { readonly numFeedbacks: number; readonly accuracy: number }[];
}

/** What is told of a choice: whether it was right, or a coin that is right as often as chance. */
export type Teller = 'right or wrong' | 'random';

export function learnByFeedback(
  name: string,
  estimator: Estimator,
  { train, test }: IntentSet,
  teller: Teller,
): LearningCurve {
  const random = createRandom(11);
  const count = train[0]!.outcomes.length;
  const points: { numFeedbacks: number; accuracy: number }[] = [];
  for (let i = 0; i <= CHECKPOINTS.at(-1)!; i++) {
    if (CHECKPOINTS.includes(i)) points.push({ numFeedbacks: i, accuracy: accuracyOf(estimator, test) });
    const { input, outcomes } = train[i % train.length]!;
    const candidate = router.bestOf(estimator.estimate(input).qualities);
    const quality = teller === 'random' ? +(random.next() < 1 / count) : outcomes[candidate]!;
    estimator.update({ input, candidate, quality, propensity: 1 });
  }
  return { name, points };
}

export interface NewsResult {
  readonly name: string;
  /** Share of other requests that go to the model before anything is heard. */
  readonly before: number;
  /** Feedbacks until nine tenths of other requests go there; null: never. */
  readonly numGood: number | null;
  /** And of bad news after that until nine tenths go elsewhere. */
  readonly numBad: number | null;
}

const MAX_NEWS = 2000;

/** Hears only good of the first model until it goes there, then only bad until it has left. */
export function hearNews({ name, train }: Contestant, data: readonly ModelOutcomes[]): NewsResult {
  const { train: known, test } = encodeAll(data.filter((_, i) => i % 8 === 0), data.filter((_, i) => i % 25 === 1)); // prettier-ignore
  const estimator = train(...router.splitValidation(known, 2));
  const rule = { candidates: candidatesOf(['small', 'large']), weights: FREE, shrinkage: null, platt: null, safeDefault: -1, minConfidence: 0 }; // prettier-ignore
  const policy = router.createPolicy(estimator, rule);
  const share = (): number => test.filter(({ input }: RouteExample) => policy.decide(input).candidate === 0).length / test.length; // prettier-ignore
  const tellUntil = (quality: number, isDone: () => boolean): number | null => {
    for (let i = 0; i < MAX_NEWS; i++) {
      if (isDone()) return i;
      policy.update({ input: known[(i * 7) % known.length]!.input, candidate: 0, quality, propensity: 1 });
    }
    return null;
  };
  const before = share();
  return {
    name,
    before,
    numGood: tellUntil(1, () => share() >= 0.9),
    numBad: tellUntil(0, () => share() <= 0.1),
  };
}
