// How much more quality a router gets for the same money than a blind mixture of the same models.
import { createRandom } from '../../../src/core/random.ts';
import type {
  Candidate,
  Contest,
  Contestant,
  RouteExample,
  SelectOptions,
} from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { bootstrap, type Interval } from './bootstrap.ts';
import type { ModelOutcomes } from './routing-data.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');

/** No memory and no machine state in these suites, so the embedding has their places: 32 + 96. */
export const TEXT_ONLY = { numBuckets: 1 << 14, embedding: 96, retrieval: 0, system: 0 } as const;
export const FREE = { perSecond: 0, perCost: 0 };
const NUM_RESAMPLES = 1000;
const NUM_SHUFFLES = 20;

export interface GainRow {
  readonly name: string;
  /** On held-out groups of the training part: what the choice is made by. */
  readonly validation: number;
  /** On the test part. */
  readonly area: number;
  readonly byRequest: Interval;
  readonly byGroup: Interval;
  /** Share of the oracle's area. */
  readonly ofOracle: number;
}

export interface GainTable {
  readonly winner: string;
  readonly rows: readonly GainRow[];
  readonly shuffled: GainRow;
  readonly numTrain: number;
  readonly numTest: number;
}

export const candidatesOf = (names: readonly string[]): Candidate[] =>
  names.map((id) => ({ id, kind: 'remote', pricePerToken: 0, latencyMs: 0 }));

/** Groups in order of the hash of seed and name; the first third is the test. Fixed by the names alone. */
export function splitGroups(data: readonly ModelOutcomes[], seed: number): Set<string> {
  const names = [...new Set(data.map(({ group }) => group))].sort((a, b) => router.hashTerm(`${seed}:${a}`) - router.hashTerm(`${seed}:${b}`)); // prettier-ignore
  return new Set(names.slice(0, Math.floor(names.length / 3)));
}

export function encodeAll(train: readonly ModelOutcomes[], test: readonly ModelOutcomes[]) {
  const requests = (data: readonly ModelOutcomes[]) => data.map(({ text }) => ({ turns: [text] }));
  const encoder = router.fitRouteEncoder(requests(train), TEXT_ONLY);
  const encode = (data: readonly ModelOutcomes[]): RouteExample[] =>
    data.map(({ text, outcomes, group }) => ({
      input: encoder.encode({ turns: [text] }),
      outcomes: Float32Array.from(outcomes),
      group,
    }));
  return { encoder, train: encode(train), test: encode(test) };
}

export function shuffleOutcomes(examples: readonly RouteExample[], seed: number): RouteExample[] {
  const random = createRandom(seed);
  const outcomes = examples.map((example) => example.outcomes);
  for (let i = outcomes.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [outcomes[i], outcomes[j]] = [outcomes[j]!, outcomes[i]!];
  }
  return examples.map((example, i) => ({ ...example, outcomes: outcomes[i]! }));
}

/** What a policy would believe of each test request. */
export function believe(
  { train }: Contestant,
  { rule }: Contest,
  examples: readonly RouteExample[],
  test: readonly RouteExample[],
): Float64Array[] {
  // prettier-ignore
  const estimator = train(...router.splitValidation(examples, 2));
  return test.map(({ input }) => router.shrink(estimator.estimate(input).qualities, rule.shrinkage).slice());
}

export function rowOf(
  name: string,
  validation: number,
  estimates: readonly Float64Array[],
  test: readonly RouteExample[],
  costs: readonly number[],
): GainRow {
  // prettier-ignore
  const outcomes = test.map((example) => example.outcomes);
  const curve = router.prepareCurve({ estimates, outcomes, costs });
  const oracle = router.prepareCurve({ estimates: outcomes.map((row) => Float64Array.from(row)), outcomes, costs }).area(); // prettier-ignore
  const area = curve.area();
  const requests = test.map((_, i) => String(i));
  const groups = test.map(({ group }) => group);
  return {
    name,
    validation,
    area,
    byRequest: bootstrap(requests, curve.area, NUM_RESAMPLES, 1),
    byGroup: bootstrap(groups, curve.area, NUM_RESAMPLES, 2),
    ofOracle: area / oracle,
  };
}

export interface ModelTask {
  readonly names: readonly string[];
  readonly costs: readonly number[];
  readonly fastGrnn: { readonly maxEpochs: number; readonly weightDecay: number };
  /** Contestants that take part; all without. */
  readonly only?: readonly string[];
}

export function contestOf(task: ModelTask, train: readonly RouteExample[]) {
  const candidates = candidatesOf(task.names);
  const options: SelectOptions = { candidates, weights: FREE, costs: task.costs, safeDefault: 0, by: 'area', numFolds: 3, seed: 1 }; // prettier-ignore
  const contestants = router
    .contestantsOf({
      candidates,
      weights: FREE,
      costs: task.costs,
      numBuckets: TEXT_ONLY.numBuckets,
      fastGrnn: task.fastGrnn,
    }) // prettier-ignore
    .filter(({ name }) => task.only?.includes(name) ?? true);
  const contests = contestants.map((contestant) => router.judge(contestant, train, options));
  const winner = contests.toSorted((a, b) => b.heldOut - a.heldOut)[0]!.name;
  return { contestants, contests, winner };
}

/** Trains on one part of the groups, chooses inside it, and looks at the other part once. */
export function measureModels(
  task: ModelTask,
  trainData: readonly ModelOutcomes[],
  testData: readonly ModelOutcomes[],
): GainTable {
  // prettier-ignore
  const { train, test } = encodeAll(trainData, testData);
  const { contestants, contests, winner } = contestOf(task, train);
  const rows = contestants.map((contestant, i) =>
    rowOf(contestant.name, contests[i]!.heldOut, believe(contestant, contests[i]!, train, test), test, task.costs),
  );
  const oracle = rowOf(
    'oracle',
    NaN,
    test.map(({ outcomes }) => Float64Array.from(outcomes)),
    test,
    task.costs,
  );
  // What the slopes are for: the same estimates with every difference believed.
  const unshrunk = contestants.flatMap((contestant, i) => {
    if (contestant.name !== 'linear') return [];
    const estimates = believe(
      contestant,
      { ...contests[i]!, rule: { ...contests[i]!.rule, shrinkage: null } },
      train,
      test,
    );
    return [rowOf('linear, all believed', NaN, estimates, test, task.costs)];
  });
  // One shuffle is one random direction in the features, and any direction may happen to pay on these subjects: only many say
  // what chance gives. The linear policy alone, since a network for each would take minutes.
  const control = contestants.findIndex(({ name }) => name === 'linear');
  const outcomes = test.map((example) => example.outcomes);
  const areas = Array.from({ length: NUM_SHUFFLES }, (_, seed) => {
    const estimates = believe(contestants[control]!, contests[control]!, shuffleOutcomes(train, 100 + seed), test);
    return router.prepareCurve({ estimates, outcomes, costs: task.costs }).area();
  }).sort((x, y) => x - y);
  const area = areas.reduce((sum, value) => sum + value, 0) / areas.length;
  const spread = { low: areas[0]!, high: areas.at(-1)! };
  const name = `linear, labels shuffled ${NUM_SHUFFLES} times: mean, least … most`;
  const shuffled = { name, validation: NaN, area, byRequest: spread, byGroup: spread, ofOracle: area / oracle.area };
  return { winner, rows: [...rows, ...unshrunk, oracle], shuffled, numTrain: train.length, numTest: test.length };
}
