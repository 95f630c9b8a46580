// Four models on few prompts: every prompt is judged by routers that were trained and chosen without it.
import type { RouteExample } from '../../../src/learning/router/index.ts';
import { importBuilt } from '../dist.ts';
import type { ModelOutcomes } from './routing-data.ts';
import { believe, contestOf, encodeAll, type GainRow, type GainTable, type ModelTask, rowOf, shuffleOutcomes } from './routing-models.ts'; // prettier-ignore

const router = await importBuilt<typeof import('../../../src/learning/router/index.ts')>('learning/router/index');
const NUM_FOLDS = 5;

/** Cross-fitted: choice, shrinkage and training see four fifths, the area is of the other fifths together. */
export function measureCrossFitted(task: ModelTask, data: readonly ModelOutcomes[]): GainTable {
  const foldOf = (text: string): number => router.hashTerm(`fold:${text}`) % NUM_FOLDS;
  const all: RouteExample[] = [];
  const beliefs = new Map<string, Float64Array[]>();
  const validations = new Map<string, number[]>();
  const wins: string[] = [];
  const add = (name: string, estimates: readonly Float64Array[]): void =>
    void beliefs.set(name, [...(beliefs.get(name) ?? []), ...estimates]);
  for (let fold = 0; fold < NUM_FOLDS; fold++) {
    const { train, test } = encodeAll(
      data.filter(({ text }) => foldOf(text) !== fold),
      data.filter(({ text }) => foldOf(text) === fold),
    );
    const { contestants, contests, winner } = contestOf(task, train);
    wins.push(winner);
    all.push(...test);
    contestants.forEach((contestant, i) => {
      const estimates = believe(contestant, contests[i]!, train, test);
      add(contestant.name, estimates);
      validations.set(contestant.name, [...(validations.get(contestant.name) ?? []), contests[i]!.heldOut]);
      if (contestant.name !== winner) return;
      add('selected', estimates);
      add('selected, shuffled labels', believe(contestant, contests[i]!, shuffleOutcomes(train, 7), test));
    });
  }
  const rowFor = (name: string): GainRow => {
    const values = validations.get(name) ?? [NaN];
    return rowOf(
      name,
      values.reduce((sum, value) => sum + value, 0) / values.length,
      beliefs.get(name)!,
      all,
      task.costs,
    );
  };
  const oracle = rowOf(
    'oracle',
    NaN,
    all.map(({ outcomes }) => Float64Array.from(outcomes)),
    all,
    task.costs,
  );
  return {
    winner: [...new Set(wins)].join(', '),
    rows: [...[...validations.keys(), 'selected'].map(rowFor), oracle],
    shuffled: rowFor('selected, shuffled labels'),
    numTrain: Math.round((all.length * (NUM_FOLDS - 1)) / NUM_FOLDS),
    numTest: all.length,
  };
}
