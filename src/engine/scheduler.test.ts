import { expect, test } from 'vitest';
import { createSchedulerSetUp } from '../../test/support/scheduler-setup.ts';
import type { Schedule } from './types.ts';

const rowsOf = (plan: Schedule): number[][] => plan.rows.map(({ id, start, numRows }) => [id, start, numRows]);

test('[E7] computes a long prompt in chunks next to one-token rows of others', () => {
  const { arrive, step } = createSchedulerSetUp();
  arrive(3);
  step();
  arrive(70);
  arrive(5);
  expect(step()).toEqual({
    rows: [
      { id: 0, start: 3, numRows: 1, isCaughtUp: true },
      { id: 1, start: 0, numRows: 31, isCaughtUp: false },
    ],
    admittedIds: [1],
    preemptedIds: [],
  });
  expect(rowsOf(step())).toEqual([
    [0, 4, 1],
    [1, 31, 31],
  ]);
  // The last 8 tokens of the long prompt leave space for the next.
  expect(step()).toEqual({
    rows: [
      { id: 0, start: 5, numRows: 1, isCaughtUp: true },
      { id: 1, start: 62, numRows: 8, isCaughtUp: true },
      { id: 2, start: 0, numRows: 5, isCaughtUp: true },
    ],
    admittedIds: [2],
    preemptedIds: [],
  });
});

test('[E7] schedules one-token rows before chunks of older sequences', () => {
  const { arrive, step } = createSchedulerSetUp({ maxBatchTokens: 8 });
  arrive(12);
  step();
  arrive(4);
  expect(rowsOf(step())).toEqual([
    [0, 8, 4],
    [1, 0, 4],
  ]);
  arrive(20);
  expect(rowsOf(step())).toEqual([
    [0, 12, 1],
    [1, 4, 1],
    [2, 0, 6],
  ]);
});

test('[E6] admits in order: a small request does not overtake a large one that must wait', () => {
  const { arrive, step } = createSchedulerSetUp({ numPages: 4, maxBatchTokens: 100 });
  arrive(15); // 1 page
  arrive(40); // 3 pages and 1 spare for the first: must wait
  arrive(1);
  expect(step().admittedIds).toEqual([0]);
  expect(step().admittedIds).toEqual([]);
});

test('[E6] requires pages for all tokens and one more', () => {
  const { arrive, step, state } = createSchedulerSetUp({ numPages: 2 });
  arrive(16);
  step();
  expect(state.running[0]!.pages.table()).toEqual(Int32Array.of(0, 1));
});

test('[E6] runs at most maxRunning sequences', () => {
  const { arrive, step } = createSchedulerSetUp({ maxRunning: 2 });
  for (let i = 0; i < 3; i++) arrive(1);
  expect(step().admittedIds).toEqual([0, 1]);
  expect(step().admittedIds).toEqual([]);
});

test('[E8] without a free page at a page boundary, the youngest returns to the head of the queue', () => {
  const { arrive, step, state } = createSchedulerSetUp({ numPages: 4 });
  arrive(14);
  arrive(14);
  arrive(30); // must wait
  expect(step().admittedIds).toEqual([0, 1]);
  expect(step().preemptedIds).toEqual([]);
  expect(step().preemptedIds).toEqual([]); // both took their second page: 4 of 4 in use
  for (let i = 0; i < 15; i++) expect(step().preemptedIds).toEqual([]);
  expect(state.running.map((one) => one.tokenIds.length)).toEqual([32, 32]);
  expect(step().preemptedIds).toEqual([]);
  expect(step()).toMatchObject({ preemptedIds: [1], admittedIds: [], rows: [{ id: 0, start: 32, numRows: 1 }] });
  expect(Array.from(state.waiting, (one) => one.request.id)).toEqual([1, 2]);
});
