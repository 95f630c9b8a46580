import { expect, test } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import type { NewTrajectory } from '../../learning/trajectories/trajectories.ts';
import { createTrajectoryKeeper } from './trajectory-keeper.ts';

const settleTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function setUp() {
  const batches: string[][] = [];
  const reports: string[] = [];
  const tasks: (() => void)[] = [];
  let turns: (() => void)[] = [];
  const state = { isQuiet: false, refused: '' };
  const keeper = createTrajectoryKeeper({
    trajectories: {
      async addAll(given) {
        const ids = given.map(({ tenant, trajectory }) => `${tenant} ${trajectory.requestId}`);
        if (ids.includes(state.refused)) throw new RuvLLMError('invalid_option', 'no place for it');
        batches.push(ids);
      },
    },
    foreground: {
      isQuiet: () => state.isQuiet,
      turn: () => (state.isQuiet ? Promise.resolve() : new Promise((resolve) => void turns.push(resolve))),
      release() {
        for (const go of turns.splice(0)) go();
      },
    },
    schedule(task) {
      tasks.push(task);
      return () => {};
    },
    report: (message) => reports.push(message),
  });
  const keep = (...ids: string[]): void => {
    for (const requestId of ids) keeper.keep('a', { requestId } as NewTrajectory);
  };
  const begin = async (): Promise<void> => {
    for (const task of tasks.splice(0)) task();
    await settleTurn();
  };
  const nextTurn = async (): Promise<void> => {
    for (const go of turns.splice(0)) go();
    await settleTurn();
  };
  return { keeper, keep, begin, nextTurn, batches, reports, state, tasks };
}

test('[TJ1] a plan that finds nothing left to write ends, and what comes next is planned and written', async () => {
  const { keeper, keep, begin, batches, tasks } = setUp();
  keep('1');
  await keeper.kept('a', '1'); // somebody could not wait for the plan
  await begin();
  keep('2');
  // Not by asking for it: where the plan never ends, who asks turns round and round.
  expect(tasks).toHaveLength(1);
  await keeper.kept('a', '2');
  expect(batches).toEqual([['a 1'], ['a 2']]);
});

test('they are written later, a few at each turn, all at once where it is quiet', async () => {
  const { keep, begin, nextTurn, batches, state } = setUp();
  keep('1', '2', '3');
  await settleTurn();
  await begin();
  expect(batches).toEqual([]);
  await nextTurn();
  expect(batches).toEqual([['a 1', 'a 2']]);
  await nextTurn();
  expect(batches).toEqual([['a 1', 'a 2'], ['a 3']]);
  state.isQuiet = true;
  keep('4', '5', '6');
  await begin();
  expect(batches.at(-1)).toEqual(['a 4', 'a 5', 'a 6']);
});

test('of a queue that grows a part goes at once', async () => {
  const { keep, begin, nextTurn, batches } = setUp();
  keep(...Array.from({ length: 640 }, (_, i) => String(i)));
  await begin();
  await nextTurn();
  expect(batches[0]).toHaveLength(10);
});

test('who asks for one does not wait for a turn, and who closes waits for all', async () => {
  const { keeper, keep, begin, batches } = setUp();
  await keeper.kept('a', 'nobody');
  keep('1', '2', '3', '4', '5');
  await begin();
  await keeper.kept('a', '3');
  expect(batches.flat()).toContain('a 3');
  keep('6');
  await keeper.settle();
  expect(batches.flat()).toEqual(['a 1', 'a 2', 'a 3', 'a 4', 'a 5', 'a 6']);
});

test('one that comes after a drain of nothing is written like all others', async () => {
  const { keeper, keep, begin, batches, state } = setUp();
  state.isQuiet = true;
  keep('1');
  await keeper.settle();
  await begin(); // what was planned before finds nothing
  keep('2');
  await begin();
  expect(batches).toEqual([['a 1'], ['a 2']]);
  await keeper.settle();
});

test('one that is refused is lost alone, and told', async () => {
  const { keeper, keep, batches, reports, state } = setUp();
  state.refused = 'a 2';
  keep('1', '2', '3');
  await keeper.settle();
  expect(batches.flat()).toEqual(['a 1', 'a 3']);
  expect(reports).toEqual(['storing a request for learning failed: no place for it']);
});

test('more than a thousand that wait are given up, which is told once', async () => {
  const { keeper, keep, batches, reports } = setUp();
  keep(...Array.from({ length: 1002 }, (_, i) => String(i)));
  expect(reports).toEqual(['1000 requests are queued for learning; more are dropped']);
  await keeper.settle();
  expect(batches.flat()).toHaveLength(1000);
});
