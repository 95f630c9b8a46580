import { expect, test } from 'vitest';
import type { LiveHistory, LiveSnapshot } from '../../api/live.ts';
import { addSnapshot, NO_HISTORY, pastOf, seriesOf } from './history.ts';

/** Samples of two models every five seconds; the second was loaded after the first sample. */
const PAST: LiveHistory = {
  at: [1000_000, 1005_000],
  answered: [4, 6],
  failed: [0, 1],
  models: [
    { id: 'a', generated: [10, 20], prompt: [1, 2], batch: [1, 2], waiting: [0, 3], used_bytes: [50, 60], budget_bytes: [100, 100], lookups: [2, 6], hits: [1, 4] }, // prettier-ignore
    { id: 'b', generated: [null, 5], prompt: [null, 0], batch: [null, 1], waiting: [null, 0], used_bytes: [null, 20], budget_bytes: [null, 300], lookups: [null, 0], hits: [null, 0] }, // prettier-ignore
  ],
};

function snapshotAt(at: number, changes: Partial<LiveSnapshot> = {}): LiveSnapshot {
  const model = { id: 'a', tokens_per_second: { generated: 7, prompt: 0 }, engine: null, pool: null };
  return { at, num_answered: 6, num_failed: 1, models: [model], ...changes } as unknown as LiveSnapshot;
}

test('the samples of the server are the beginning of both ranges, as sums or of one model', () => {
  const { recent, hour } = pastOf(PAST);
  expect(hour).toEqual(recent);
  expect(seriesOf(hour, null)).toEqual({
    at: [1000, 1005],
    generated: [10, 25],
    prompt: [1, 2],
    batch: [1, 3],
    waiting: [0, 3],
    budgetShare: [0.5, 0.2],
    hitShare: [null, 0.75],
    answered: [0, 2],
    failed: [0, 1],
  });
  expect(seriesOf(hour, 'b')).toMatchObject({
    generated: [0, 5],
    budgetShare: [null, 20 / 300],
    hitShare: [null, null],
  });
});

test('snapshots continue the ranges: every second for five minutes, every five seconds for an hour', () => {
  let history = pastOf(PAST);
  for (let second = 1; second <= 3700; second++) history = addSnapshot(history, snapshotAt(1005_000 + second * 1000));
  expect(history.recent).toHaveLength(301);
  expect(history.hour).toHaveLength(721);
  expect(history.hour.at(-1)!.at - history.hour[0]!.at).toBe(3600);
  expect(seriesOf(history.recent, null).generated).toEqual(Array.from({ length: 301 }, () => 7));
  expect(addSnapshot(NO_HISTORY, snapshotAt(5000)).hour).toHaveLength(1);
});

test('counts of the last minute leave older requests out, also when a reloaded model counts from zero', () => {
  let history = addSnapshot(NO_HISTORY, snapshotAt(0, { num_answered: 0, num_failed: 0 }));
  history = addSnapshot(history, snapshotAt(30_000, { num_answered: 5, num_failed: 2 }));
  history = addSnapshot(history, snapshotAt(91_000, { num_answered: 6, num_failed: 2 }));
  expect(seriesOf(history.recent, null)).toMatchObject({ answered: [0, 5, 0], failed: [0, 2, 0] });
  history = addSnapshot(history, snapshotAt(92_000, { num_answered: 1, num_failed: 0 }));
  expect(seriesOf(history.recent, null).answered.at(-1)).toBe(0);
});
