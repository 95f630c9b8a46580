// Classifies questions into 77 intents: a held-out fifth, with all choices made inside the training part.
import { createRandom } from '../../../src/core/random.ts';
import type { Contestant, Estimator, RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { benchContestants } from './routers/contestants.ts';
import { bootstrap, type Interval } from '../../../src/learning/evaluation/bootstrap.ts';
import type { ModelOutcomes } from './routing-data.ts';
import { candidatesOf, encodeAll, FREE, SERVED, shuffleOutcomes } from './routing-models.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');
/** Only words, closely fitted: the intents differ by words, and each has a hundred questions. */
export const INTENT_LINEAR = { ...router.LINEAR_DEFAULTS, queryScale: 0, termScale: 1, ridge: 5e-4, numEpochs: 6 };
const NEIGHBOURS = [1, 5, 10];
const SPLIT_SEED = 77;

export interface IntentRow {
  readonly name: string;
  readonly validation: number;
  readonly accuracy: number;
  readonly interval: Interval;
}

export interface IntentTable {
  readonly winner: string;
  readonly rows: readonly IntentRow[];
  readonly shuffled: IntentRow;
  readonly numTrain: number;
  readonly numTest: number;
}

/** The same questions in several encodings. */
export interface IntentSet {
  readonly train: readonly RouteExample[];
  readonly test: readonly RouteExample[];
}

const isRight = (estimator: Estimator, { input, outcomes }: RouteExample): number =>
  outcomes[router.bestOf(estimator.estimate(input).qualities)]!;
export const rightOnes = (estimator: Estimator, examples: readonly RouteExample[]): Float64Array =>
  Float64Array.from(examples, (example) => isRight(estimator, example));
const accuracyOf = (estimator: Estimator, examples: readonly RouteExample[]): number =>
  examples.reduce((sum, example) => sum + isRight(estimator, example), 0) / examples.length;

function rowOf(name: string, validation: number, estimator: Estimator, test: readonly RouteExample[]): IntentRow {
  const right = rightOnes(estimator, test);
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

/** Every fifth question of each intent, in a seeded order. */
export function splitIntents(data: readonly ModelOutcomes[]): { train: ModelOutcomes[]; test: ModelOutcomes[] } {
  const random = createRandom(SPLIT_SEED);
  const order = data.map((one) => ({ one, at: random.next() })).sort((a, b) => a.at - b.at);
  const counts = new Map<string, number>();
  const parts: { train: ModelOutcomes[]; test: ModelOutcomes[] } = { train: [], test: [] };
  for (const { one } of order) {
    const count = counts.get(one.cluster) ?? 0;
    counts.set(one.cluster, count + 1);
    (count % 5 === 0 ? parts.test : parts.train).push(one);
  }
  return parts;
}

export const encodeIntents = (data: readonly ModelOutcomes[], vectors?: readonly Float32Array[]): IntentSet => {
  const { train, test } = splitIntents(vectors === undefined ? data : data.map((one, i) => ({ ...one, vector: vectors[i]! }))); // prettier-ignore
  return encodeAll(train, test);
};

/** `sets` by the source of the embedding. */
export function measureIntents(
  names: readonly string[],
  sets: ReadonlyMap<string, IntentSet>,
  log: (line: string) => void,
): IntentTable & { readonly contestant: Contestant; readonly encoding: string } {
  const base = {
    candidates: candidatesOf(names),
    weights: FREE,
    costs: names.map(() => 1),
    numBuckets: SERVED.numBuckets,
    linear: INTENT_LINEAR,
  };
  const contestantOf = (name: string, options = {}): Contestant =>
    benchContestants({ ...base, ...options }).find((one) => one.name === name)!;
  const entrants = [...sets].flatMap(([encoding, { train }]) => {
    const hasVectors = train[0]!.input.vector !== undefined;
    const named = hasVectors ? ['vector ridge', 'logistic'] : ['keyword', 'linear', 'ridge', 'cosine ridge'];
    return [
      ...NEIGHBOURS.map((k) => ({ encoding, title: `k-NN, ${encoding}, k = ${k}`, contestant: contestantOf('k-NN', { hasVectors, knn: { k, prior: 0.1 } }) })), // prettier-ignore
      ...named.map((name) => ({ encoding, title: `${name}, ${encoding}`, contestant: contestantOf(name, { hasVectors }) })), // prettier-ignore
    ];
  });
  const judged = entrants.map(({ encoding, title, contestant }) => {
    const { train } = sets.get(encoding)!;
    const [validation, fitting] = [train.filter((_, i) => i % 5 === 0), train.filter((_, i) => i % 5 !== 0)];
    const estimator = contestant.train(fitting, []);
    const value = accuracyOf(estimator, validation);
    log(`${title}: ${value.toFixed(4)} on the validation part`);
    return { encoding, title, contestant, validation: value };
  });
  const best = judged.toSorted((a, b) => b.validation - a.validation)[0]!;
  // Of the numbers of neighbours only the best, the first among equals: the others were choices, not contestants.
  const isBeaten = (one: (typeof judged)[number]): boolean =>
    judged.some(
      (other, i) =>
        other.contestant.name === 'k-NN' &&
        other.encoding === one.encoding &&
        (other.validation > one.validation || (other.validation === one.validation && i < judged.indexOf(one))),
    );
  const visible = judged.filter((one) => one.contestant.name !== 'k-NN' || !isBeaten(one));
  const rows = visible.map(({ encoding, title, contestant, validation }) => {
    const { train, test } = sets.get(encoding)!;
    return rowOf(title, validation, contestant.train(train, []), test);
  });
  const { train, test } = sets.get(best.encoding)!;
  const control = best.contestant.train(shuffleOutcomes(train, 5), []);
  return {
    winner: best.title,
    rows,
    shuffled: rowOf(`${best.title}, shuffled labels`, NaN, control, test),
    numTrain: train.length,
    numTest: test.length,
    contestant: best.contestant,
    encoding: best.encoding,
  };
}
