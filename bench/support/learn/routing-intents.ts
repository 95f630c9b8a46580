// Which of 77 intents a question has: a held-out fifth, then the same from nothing by feedback alone.
import { createRandom } from '../../../src/core/random.ts';
import type { Estimator, RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { bootstrap, type Interval } from './bootstrap.ts';
import { readBanking } from './routing-data.ts';
import { candidatesOf, FREE, TEXT_ONLY } from './routing-models.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');
const CHECKPOINTS = [0, 100, 300, 1000, 2000, 5000];
/** Words alone, closely fitted: the intents differ by words, and there are a hundred questions of each. */
const LINEAR = { ...router.LINEAR_DEFAULTS, queryScale: 0, termScale: 1, ridge: 5e-4, numEpochs: 6 };

export interface IntentRow {
  readonly name: string;
  readonly validation: number;
  readonly accuracy: number;
  readonly interval: Interval;
}

export interface LearningCurve {
  readonly name: string;
  /** Accuracy on the held-out fifth after so many feedbacks. */
  readonly points: readonly { readonly numFeedbacks: number; readonly accuracy: number }[];
}

export interface IntentTable {
  readonly winner: string;
  readonly rows: readonly IntentRow[];
  readonly shuffled: IntentRow;
  readonly curves: readonly LearningCurve[];
  readonly numTrain: number;
  readonly numTest: number;
}

const isRight = (estimator: Estimator, { input, outcomes }: RouteExample): number =>
  outcomes[router.bestOf(estimator.estimate(input).qualities)]!;
const accuracyOf = (estimator: Estimator, examples: readonly RouteExample[]): number =>
  examples.reduce((sum, example) => sum + isRight(estimator, example), 0) / examples.length;

function rowOf(name: string, validation: number, estimator: Estimator, test: readonly RouteExample[]): IntentRow {
  const right = Float64Array.from(test, (example) => isRight(estimator, example));
  const mean = (counts: Float64Array): number =>
    right.reduce((sum, value, i) => sum + counts[i]! * value, 0) / right.length;
  const units = test.map((_, i) => String(i));
  return {
    name,
    validation,
    accuracy: mean(new Float64Array(test.length).fill(1)),
    interval: bootstrap(units, mean, 500, 3),
  };
}

/** Feedback one at a time: `named` tells the right intent, otherwise only whether the chosen one was right. */
function learnOnline(
  name: string,
  order: readonly RouteExample[],
  test: readonly RouteExample[],
  isNamed: boolean,
  isRandom: boolean,
): LearningCurve {
  // prettier-ignore
  const count = order[0]!.outcomes.length;
  const estimator = router.trainLinear([], count, TEXT_ONLY.numBuckets, LINEAR);
  const random = createRandom(11);
  const points: { numFeedbacks: number; accuracy: number }[] = [];
  for (let i = 0; i <= Math.max(...CHECKPOINTS); i++) {
    if (CHECKPOINTS.includes(i)) points.push({ numFeedbacks: i, accuracy: accuracyOf(estimator, test) });
    const { input, outcomes } = order[i % order.length]!;
    const chosen = router.bestOf(estimator.estimate(input).qualities);
    const tell = (candidate: number): void => {
      const quality = isRandom ? +(random.next() < 1 / count) : outcomes[candidate]!;
      estimator.update({ input, candidate, quality, propensity: 1 });
    };
    if (isNamed) for (let candidate = 0; candidate < count; candidate++) tell(candidate);
    else tell(chosen);
  }
  return { name, points };
}

export function measureIntents(): IntentTable {
  const data = readBanking();
  const names = [...new Set(data.map(({ intent }) => intent))].sort();
  const part = (text: string, salt: string): number => router.hashTerm(`${salt}:${text}`) % 5;
  const trainData = data.filter(({ text }) => part(text, 'held-out') !== 0);
  const encoder = router.fitRouteEncoder(trainData.map(({ text }) => ({ turns: [text] })), TEXT_ONLY); // prettier-ignore
  const encode = (one: { text: string; intent: string }): RouteExample => ({
    input: encoder.encode({ turns: [one.text] }),
    outcomes: Float32Array.from(names, (name) => +(name === one.intent)),
    group: one.text,
  });
  const train = trainData.map(encode);
  const test = data.filter(({ text }) => part(text, 'held-out') === 0).map(encode);
  const fitting = train.filter(({ group }) => part(group, 'validation') !== 0);
  const validation = train.filter(({ group }) => part(group, 'validation') === 0);

  const candidates = candidatesOf(names);
  const contestants = router
    .contestantsOf({
      candidates,
      weights: FREE,
      costs: names.map(() => 1),
      numBuckets: TEXT_ONLY.numBuckets,
      linear: LINEAR,
      knn: { k: 10, prior: 0.1 },
      fastGrnn: { maxEpochs: 14, weightDecay: 0.05, learningRate: 4e-3 },
      judge: 'choice',
    })
    .filter(({ name }) => ['keyword', 'k-NN', 'linear', 'FastGRNN'].includes(name));
  const judged = contestants.map(({ name, train: fit }) => {
    const estimator = fit(fitting, validation);
    return { name, fit, estimator, validation: accuracyOf(estimator, validation) };
  });
  const best = judged.toSorted((a, b) => b.validation - a.validation)[0]!;
  const rows = judged.map(({ name, fit, estimator, validation: value }) =>
    rowOf(name, value, name === 'FastGRNN' ? estimator : fit(train, []), test),
  );
  const random = createRandom(5);
  const order = train.map((example) => ({ example, at: random.next() })).sort((a, b) => a.at - b.at).map(({ example }) => example); // prettier-ignore
  const mixed = train.map((example, i) => ({ ...example, outcomes: order[i]!.outcomes }));
  const control = contestants.find(({ name }) => name === best.name)!.train(mixed, []);
  return {
    winner: best.name,
    rows,
    shuffled: rowOf(`${best.name}, shuffled labels`, NaN, control, test),
    curves: [
      learnOnline('right or wrong only', order, test, false, false),
      learnOnline('the right one named', order, test, true, false),
      learnOnline('random feedback', order, test, false, true),
    ],
    numTrain: train.length,
    numTest: test.length,
  };
}
