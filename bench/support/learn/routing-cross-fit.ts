// Every request is judged once, by routers trained and chosen without its group, as are routers trained on shuffled outcomes.
import type { GainTable, GainTask } from '../../../src/learning/evaluation/cross-fitted-gain.ts';
import type { Contestant, RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import { benchContestants } from './routers/contestants.ts';
import { candidatesOf, FREE, SERVED } from './routing-models.ts';

const gain = await importBuilt<typeof import('../../../src/learning/evaluation/cross-fitted-gain.ts')>('learning/evaluation/cross-fitted-gain'); // prettier-ignore
export const { claimOf } = gain;
export type { GainTable };

export interface ModelTask extends Omit<GainTask, 'contestants'> {
  /** Participating contestants. */
  readonly only: readonly string[];
  readonly fastGrnn: { readonly maxEpochs: number; readonly weightDecay: number };
}

function contestantsFor(task: ModelTask, hasVectors: boolean): Contestant[] {
  const candidates = candidatesOf(task.names);
  const all = benchContestants({
    candidates,
    weights: FREE,
    costs: task.costs,
    numBuckets: SERVED.numBuckets,
    fastGrnn: task.fastGrnn,
    hasVectors,
  });
  return all.filter(({ name }) => task.only.includes(name));
}

/** `examples` are encoded once, with directions and scales of all texts and no outcome; `clusters` by example. */
export function measureCrossFitted(
  task: ModelTask,
  examples: readonly RouteExample[],
  clusters: readonly string[],
  log: (line: string) => void,
): GainTable {
  const contestants = contestantsFor(task, examples[0]!.input.vector !== undefined);
  return gain.measureCrossFitted({ ...task, contestants }, examples, clusters, log);
}
