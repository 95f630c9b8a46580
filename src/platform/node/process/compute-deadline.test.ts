import { expect, test } from 'vitest';
import { startComputeDeadline } from './compute-deadline.ts';

/** A machine on which this process gets `share` of a core. */
function createMachine(share: number) {
  let nowMs = 0;
  const expiries: number[] = [];
  let planned: { atMs: number; run: () => void } | null = null;
  const clock = {
    now: () => nowMs,
    usedMs: () => 500 + nowMs * share,
    after(delayMs: number, run: () => void) {
      planned = { atMs: nowMs + delayMs, run };
      return () => void (planned = null);
    },
  };
  const cancel = startComputeDeadline(1000, () => void expiries.push(nowMs), clock);
  /** Lets time pass until `untilMs` or the deadline: when that came, or null. */
  function pass(untilMs: number): number | null {
    while (planned !== null && planned.atMs <= untilMs) {
      nowMs = planned.atMs;
      const { run } = planned;
      planned = null;
      run();
    }
    return expiries[0] ?? null;
  }
  return { pass, cancel };
}

test('a process with a core to itself has its limit in wall time', () => {
  expect(createMachine(1).pass(60_000)).toBe(1000);
  // Other threads of the process compute as well: never less than the limit.
  expect(createMachine(4).pass(60_000)).toBe(1000);
});

test('a process that gets a fifth of a core has five times as long', () => {
  expect(createMachine(0.2).pass(4900)).toBeNull();
  expect(createMachine(0.2).pass(60_000)).toBeCloseTo(5000, -1);
});

test('a thread that is blocked is late after fifteen times its limit', () => {
  expect(createMachine(0).pass(14_900)).toBeNull();
  expect(createMachine(0).pass(60_000)).toBe(15_000);
});

test('a deadline that is cancelled never comes', () => {
  const { pass, cancel } = createMachine(0.2);
  expect(pass(1500)).toBeNull();
  cancel();
  expect(pass(60_000)).toBeNull();
});

test('the clock of the process counts a busy thread', async () => {
  await new Promise<void>((resolve) => {
    startComputeDeadline(20, resolve);
    for (const end = process.cpuUsage().user + 30_000; process.cpuUsage().user < end;); // compute 30 ms
  });
});
