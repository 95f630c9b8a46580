import { expect, test } from 'vitest';
import { createSchedulerSetUp } from '../../test/support/scheduler-setup.ts';
import type { Schedule } from './types.ts';

const idsOf = (plan: Schedule): number[] => plan.rows.map(({ id }) => id);

test('[E15] a request of higher priority preempts the lowest when slots are short', () => {
  const { arrive, step, state } = createSchedulerSetUp({ maxRunning: 2 });
  arrive(3, { priority: 1 });
  arrive(3);
  step();
  arrive(3, { priority: 1 });
  expect(step()).toMatchObject({ admittedIds: [2], preemptedIds: [1] });
  expect(state.running.map(({ request }) => request.id)).toEqual([0, 2]);
  arrive(3, { priority: 1 }); // equal to all running
  expect(step()).toMatchObject({ admittedIds: [], preemptedIds: [] });
});

test('[E15] ... and when pages are short, with no more preemptions than needed', () => {
  const { arrive, step, state } = createSchedulerSetUp({ numPages: 9, maxBatchTokens: 64 });
  for (let i = 0; i < 3; i++) arrive(20); // 2 pages each
  expect(step().admittedIds).toEqual([0, 1, 2]);
  arrive(40, { priority: 2 }); // 3 pages, and one for each that stays
  expect(step()).toMatchObject({ admittedIds: [3], preemptedIds: [2] });
  expect(state.running.map(({ request }) => request.id)).toEqual([3, 0, 1]);
});

test('[E15] equals are not preempted, however long the other has waited', () => {
  const { arrive, step } = createSchedulerSetUp({ maxRunning: 1 });
  arrive(3);
  step(0);
  arrive(3);
  for (let nowMs = 0; nowMs < 100_000; nowMs += 1000) expect(step(nowMs).preemptedIds).toEqual([]);
});

test('[E16] waiting raises a request above later ones of higher priority, which do not preempt it', () => {
  const { arrive, step, end } = createSchedulerSetUp({ maxRunning: 1 }); // one priority per 1000 ms
  arrive(3, { priority: 2 });
  step(0);
  arrive(3, { priority: 0 }, 0);
  arrive(3, { priority: 1 }, 1999);
  end(0);
  expect(step(1999).admittedIds).toEqual([1]); // 0 + 1, equal, and came first
  expect(step(2000).preemptedIds).toEqual([]);
  arrive(3, { priority: 2 }, 2000);
  expect(step(2000)).toMatchObject({ admittedIds: [3], preemptedIds: [1] });
  end(3);
  // It returns with the priority it has gained.
  expect(step(3000).admittedIds).toEqual([1]);
  arrive(3, { priority: 3 }, 3000);
  expect(step(3000).preemptedIds).toEqual([]);
  arrive(3, { priority: 4 }, 3000);
  expect(step(3000).preemptedIds).toEqual([1]);
});

test("[E17] a tenant's one request does not wait behind fifty of another", () => {
  const { arrive, step, end } = createSchedulerSetUp({ maxRunning: 2 });
  for (let i = 0; i < 50; i++) arrive(5, { tenant: 'many' });
  const few = arrive(5, { tenant: 'few' });
  expect(step().admittedIds).toEqual([0, few]); // alternating from the first step on
  const late = arrive(5, { tenant: 'late' });
  end(0);
  expect(step().admittedIds).toEqual([1]); // all were served equally
  end(1);
  expect(step().admittedIds).toEqual([late]);
});

test('[E18] runs no more of a tenant than its limit; others pass', () => {
  const { arrive, step, end } = createSchedulerSetUp({ maxRunningPerTenant: 2 });
  for (let i = 0; i < 4; i++) arrive(3, { tenant: 'a' });
  arrive(3, { tenant: 'b' });
  expect(step().admittedIds.toSorted()).toEqual([0, 1, 4]);
  expect(step().admittedIds).toEqual([]);
  end(0);
  expect(step().admittedIds).toEqual([2]);
  arrive(3, { tenant: 'a', priority: 5 });
  expect(step()).toMatchObject({ admittedIds: [], preemptedIds: [] });
});

test('[E19] computes an instruction shared by 100 requests once', () => {
  const { arrive, step, end, state } = createSchedulerSetUp({ maxBatchTokens: 512, maxRunning: 8 });
  const instruction = Array.from({ length: 50 }, (_, i) => i);
  for (let i = 0; i < 100; i++) arrive(0, { promptIds: [...instruction, i % 60, 7] });
  let numComputed = 0;
  while (state.running.length + state.waiting.length > 0) {
    const plan = step();
    for (const { id, numRows, isCaughtUp } of plan.rows) {
      numComputed += numRows;
      if (isCaughtUp) end(id);
    }
  }
  // 3 whole pages once; every request but the first then computes its last 4 tokens, or fewer where they are shared too.
  expect(numComputed).toBeLessThanOrEqual(52 + 99 * 4);
  expect(numComputed).toBeGreaterThanOrEqual(52 + 99);
});

test('[E19] does not wait for a prefix of another tenant or adapter, or without shared tokens', () => {
  for (const other of [{ tenant: 'b' }, { adapterHash: 'x' }, { cachePrefix: false }]) {
    const { arrive, step } = createSchedulerSetUp({ maxBatchTokens: 64 });
    const promptIds = Array.from({ length: 40 }, () => 5);
    arrive(0, { promptIds });
    arrive(0, { promptIds, ...other });
    expect(step().admittedIds, JSON.stringify(other)).toEqual([0, 1]);
  }
});

test('[E19] does not wait where the prefix cache is off', () => {
  const { arrive, step } = createSchedulerSetUp({ maxBatchTokens: 64, keepsPrefixes: false });
  const promptIds = Array.from({ length: 20 }, () => 5);
  arrive(0, { promptIds });
  arrive(0, { promptIds });
  arrive(0, { promptIds });
  expect(step().admittedIds).toEqual([0, 1, 2]);
});

test('[E19] does not wait for a lower priority, which may take long', () => {
  const { arrive, step } = createSchedulerSetUp({ maxBatchTokens: 16 });
  const promptIds = Array.from({ length: 80 }, () => 5);
  arrive(0, { promptIds });
  step();
  arrive(0, { promptIds, priority: 1 });
  expect(step()).toMatchObject({ admittedIds: [1], rows: [{ id: 1, start: 16, numRows: 16 }] });
});

test('[E20] a schedule is plain data and deterministic', () => {
  const run = (): Schedule[] => {
    const { arrive, step } = createSchedulerSetUp({ numPages: 12, maxRunning: 5, maxBatchTokens: 20 });
    return Array.from({ length: 120 }, (_, i) => {
      if (i % 3 === 0 && i < 60) arrive(1 + ((i * 7) % 40), { tenant: `${i % 4}`, priority: i % 5 === 0 ? 1 : 0 }, i);
      return step(i);
    });
  };
  const plans = run();
  expect(structuredClone(plans)).toEqual(plans);
  expect(run()).toEqual(plans);
  expect(plans.flatMap(({ preemptedIds }) => preemptedIds).length).toBeGreaterThan(0);
  expect(plans.every((plan) => new Set(idsOf(plan)).size === plan.rows.length)).toBe(true);
});
