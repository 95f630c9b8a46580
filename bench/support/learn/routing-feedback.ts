// From scratch by feedback alone: one decision, one outcome, repeatedly.
import { createRandom } from '../../../src/core/random.ts';
import type { Contestant, Estimator, RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { bootstrap, type Interval } from '../../../src/learning/evaluation/bootstrap.ts';
import type { ModelOutcomes } from './routing-data.ts';
import { type IntentSet, rightOnes } from './routing-intents.ts';
import { candidatesOf, encodeAll, FREE } from './routing-models.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');
const CHECKPOINTS = [0, 100, 300, 1000, 2000, 5000];

export interface LearningCurve {
  readonly name: string;
  /** Accuracy on the held-out fifth after so many feedbacks. */
  readonly points: readonly { readonly numFeedbacks: number; readonly accuracy: number }[];
  /** 95 % interval of the last, over questions. */
  readonly interval: Interval;
}

/** Feedback on a choice: whether it was right, or a coin that is right as often as chance. */
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
  let right: Float64Array = new Float64Array();
  const shareOf = (counts: ArrayLike<number>): number =>
    right.reduce((sum, value, i) => sum + counts[i]! * value, 0) / right.length;
  const once = new Float64Array(test.length).fill(1);
  for (let i = 0; i <= CHECKPOINTS.at(-1)!; i++) {
    if (CHECKPOINTS.includes(i)) {
      right = rightOnes(estimator, test);
      points.push({ numFeedbacks: i, accuracy: shareOf(once) });
    }
    const { input, outcomes } = train[i % train.length]!;
    const candidate = router.bestOf(estimator.estimate(input).qualities);
    const quality = teller === 'random' ? +(random.next() < 1 / count) : outcomes[candidate]!;
    estimator.update({ input, candidate, quality, propensity: 1 });
  }
  return {
    name,
    points,
    interval: bootstrap(
      test.map((_, i) => String(i)),
      shareOf,
      400,
      5,
    ),
  };
}

export interface NewsResult {
  readonly name: string;
  /** Share of other requests routed to the model before any feedback. */
  readonly before: number;
  /** Feedbacks until nine tenths of other requests go there; null: never. */
  readonly numGood: number | null;
  /** Then bad feedbacks until nine tenths go elsewhere. */
  readonly numBad: number | null;
  /** Share after as many neutral feedbacks: the model's score on another request. */
  readonly afterNeither: number;
}

const MAX_NEWS = 2000;

/** Gives only good feedback on the first model until it is chosen, then only bad until it is left. */
export function hearNews({ name, train }: Contestant, data: readonly ModelOutcomes[]): NewsResult {
  const { train: examples, test } = encodeAll(data.filter((_, i) => i % 8 === 0), data.filter((_, i) => i % 25 === 1)); // prettier-ignore
  const rule = { candidates: candidatesOf(['small', 'large']), weights: FREE, shrinkage: null, platt: null, safeDefault: -1, minConfidence: 0 }; // prettier-ignore
  const begin = () => {
    const policy = router.createPolicy(train(...router.splitValidation(examples, 2)), rule);
    const share = (): number => test.filter(({ input }: RouteExample) => policy.decide(input).candidate === 0).length / test.length; // prettier-ignore
    const tell = (i: number, quality: number): void =>
      policy.update({ input: examples[(i * 7) % examples.length]!.input, candidate: 0, quality, propensity: 1 });
    return { share, tell };
  };
  const { share, tell } = begin();
  const giveFeedbackUntil = (quality: number, isDone: () => boolean): number | null => {
    for (let i = 0; i < MAX_NEWS; i++) {
      if (isDone()) return i;
      tell(i, quality);
    }
    return null;
  };
  const before = share();
  const numGood = giveFeedbackUntil(1, () => share() >= 0.9);
  const numBad = giveFeedbackUntil(0, () => share() <= 0.1);
  const neither = begin();
  const random = createRandom(13);
  for (let i = 0; i < (numGood ?? MAX_NEWS) + (numBad ?? MAX_NEWS); i++)
    neither.tell(i, examples[Math.floor(random.next() * examples.length)]!.outcomes[0]!);
  return { name, before, numGood, numBad, afterNeither: neither.share() };
}
