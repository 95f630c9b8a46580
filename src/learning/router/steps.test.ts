import { expect, test } from 'vitest';
import { runSteps, runStepsWithPauses, type Steps } from './steps.ts';

function* count(done: number[]): Steps<string> {
  for (let i = 0; i < 100; i++) {
    done.push(i);
    yield;
  }
  return 'all';
}
const what = 'counting';

test('gives the same result with and without pauses', async () => {
  const [first, second]: [number[], number[]] = [[], []];
  expect(runSteps(count(first))).toBe('all');
  let clock = 0;
  const { signal } = new AbortController();
  expect(await runStepsWithPauses(count(second), { signal, now: () => (clock += 3), what })).toBe('all');
  expect(second).toEqual(first);
  expect(first).toHaveLength(100);
});

test('[RT7] an abort during a pause takes effect at the next step', async () => {
  const done: number[] = [];
  const stop = new AbortController();
  let clock = 0;
  setTimeout(() => stop.abort(), 0);
  const running = runStepsWithPauses(count(done), { signal: stop.signal, now: () => (clock += 3), what });
  await expect(running).rejects.toMatchObject({ code: 'aborted', message: expect.stringContaining(what) as string });
  expect(done.length).toBeGreaterThan(1);
  expect(done.length).toBeLessThan(100);
});
