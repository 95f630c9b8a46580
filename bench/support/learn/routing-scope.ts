// Questions of intents that no training question has, and of other suites: a router must not guess their route.
import type { RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { bootstrap, type Interval } from '../../../src/learning/evaluation/bootstrap.ts';
import type { ModelOutcomes } from './routing-data.ts';
import { splitIntents } from './routing-intents.ts';
import { encodeAll } from './routing-models.ts';

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');

export interface ScopeTable {
  readonly minSimilarity: number;
  readonly rows: readonly {
    readonly name: string;
    readonly count: number;
    readonly rejected: number;
    readonly interval: Interval;
  }[];
}

/** Every fifth intent is out of scope; `far` are questions of other suites. All have vectors. */
export function measureScope(questions: readonly ModelOutcomes[], far: readonly ModelOutcomes[]): ScopeTable {
  const intents = [...new Set(questions.map(({ cluster }) => cluster))].sort();
  const outside = new Set(intents.filter((_, i) => i % 5 === 0));
  const { train, test } = splitIntents(questions.filter(({ cluster }) => !outside.has(cluster)));
  const near = questions.filter(({ cluster }) => outside.has(cluster));
  const encoded = encodeAll(train, [...test, ...near, ...far]);
  const familiarity = router.fitFamiliarity(encoded.train, 1)!;
  const isRejected = ({ input }: RouteExample): number =>
    +(router.nearestSimilarity(familiarity, input.vector!) < familiarity.minSimilarity);
  const rejected = encoded.test.map(isRejected);
  const rowOf = (name: string, from: number, count: number): ScopeTable['rows'][number] => {
    const values = rejected.slice(from, from + count);
    const mean = (counts: Float64Array): number =>
      values.reduce((sum, value, i) => sum + counts[i]! * value, 0) / count;
    const units = values.map((_, i) => String(i));
    return { name, count, rejected: mean(new Float64Array(count).fill(1)), interval: bootstrap(units, mean, 400, 4) };
  };
  return {
    minSimilarity: familiarity.minSimilarity,
    rows: [
      rowOf('held-out questions of known intents', 0, test.length),
      rowOf('questions of other intents', test.length, near.length),
      rowOf('prompts of another suite', test.length + near.length, far.length),
    ],
  };
}
