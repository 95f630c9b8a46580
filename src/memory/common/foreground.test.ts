import { expect, test } from 'vitest';
import { createManualSchedule } from '../witness/harness.contract.ts';
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

test('[WL16] it is quiet when nobody waits, and a moment after', async () => {
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

test('[WL16] a turn comes after the next answer, or soon; a failure is an answer', async () => {
  const { foreground, runAll, delays } = setUp();
  await foreground.turn();
  await expect(foreground.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  const first = foreground.turn();
  expect(await isDone(first)).toBe(false);
  expect(delays()).toEqual([10]);
  await foreground.run(async () => 1);
  expect(await isDone(first)).toBe(true);
  expect(delays()).toEqual([]);
  const second = foreground.turn();
  runAll();
  expect(await isDone(second)).toBe(true);
});
