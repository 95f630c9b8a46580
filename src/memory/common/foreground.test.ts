import { expect, test } from 'vitest';
import { createManualSchedule } from '../audit/harness.contract.ts';
import { createForeground } from './foreground.ts';

function setUp() {
  const manual = createManualSchedule();
  let nowMs = 0;
  const foreground = createForeground(() => nowMs, manual.schedule);
  return { foreground, ...manual, pass: (ms: number) => void (nowMs += ms) };
}

/** Whether it has resolved by now. */
async function isDone(work: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  await new Promise((resolve) => setImmediate(resolve));
  return (await Promise.race([work, Promise.resolve(pending)])) !== pending;
}

test('[WL16] is quiet a moment after the last request', async () => {
  const { foreground, pass } = setUp();
  expect(foreground.isQuiet()).toBe(true);
  let answer = (): void => {};
  const asking = foreground.run(() => new Promise<void>((resolve) => (answer = resolve)));
  pass(1000);
  expect(foreground.isQuiet()).toBe(false);
  answer();
  await asking;
  expect(foreground.isQuiet()).toBe(false);
  pass(19);
  expect(foreground.isQuiet()).toBe(false);
  pass(1);
  expect(foreground.isQuiet()).toBe(true);
});

test('[WL16] a turn comes a moment after the next answer, and not in the middle of one; a failure is an answer', async () => {
  const { foreground, runAll, delays } = setUp();
  await foreground.turn();
  let answer = (): void => {};
  const asking = foreground.run(() => new Promise<void>((resolve) => (answer = resolve)));
  const first = foreground.turn();
  expect(await isDone(first)).toBe(false);
  expect(delays()).toEqual([10]);
  answer();
  await asking;
  expect(await isDone(first)).toBe(false); // the caller continues first
  expect(delays()).toEqual([10, 0]);
  await expect(foreground.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(delays()).toEqual([10, 0]); // from that answer on
  runAll();
  expect(await isDone(first)).toBe(true);
  expect(delays()).toEqual([]);
});

test('[WL16] turns come one after the other, and none waits long', async () => {
  const { foreground, run, delays } = setUp();
  await foreground.run(async () => 1);
  const [first, second] = [foreground.turn(), foreground.turn()];
  expect(delays()).toEqual([10, 0, 10]);
  run(1);
  expect(await isDone(first)).toBe(true);
  expect(await isDone(second)).toBe(false);
  expect(delays()).toEqual([10, 0]);
  void foreground.run(() => new Promise(() => {}));
  expect(delays()).toEqual([10]);
  run(0);
  expect(await isDone(second)).toBe(true);
  expect(delays()).toEqual([]);
});

test('[WL16] those whose turn has not come are let go at once', async () => {
  const { foreground, delays } = setUp();
  await foreground.run(async () => 1);
  const waiting = [foreground.turn(), foreground.turn()];
  foreground.release();
  for (const one of waiting) expect(await isDone(one)).toBe(true);
  expect(delays()).toEqual([]);
});
