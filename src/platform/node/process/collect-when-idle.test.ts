import { getHeapStatistics } from 'node:v8';
import { expect, test } from 'vitest';
import { collectWhenIdle } from './collect-when-idle.ts';

const MB = 1 << 20;
const usedMb = (): number => getHeapStatistics().used_heap_size / MB;

/** Unreachable when it returns, and of old age for V8, which would keep it until the thread allocates as much again. */
function makeGarbage(): void {
  const rows: number[][] = [];
  for (let i = 0; i < 200_000; i++) rows.push(Array.from({ length: 16 }, (_, j) => i + j));
}

test('an idle thread gives its garbage back', async () => {
  const stop = collectWhenIdle({ everyMs: 50, minGrowthBytes: 1 });
  makeGarbage();
  const before = usedMb();
  expect(before).toBeGreaterThan(30);
  await expect.poll(usedMb, { interval: 500, timeout: 60_000 }).toBeLessThan(before - 25);
  stop();
});

test('a thread that works is left alone, and one whose heap has not grown', async () => {
  let numCollected = 0;
  const stop = collectWhenIdle({ everyMs: 20, minGrowthBytes: 1, collect: () => numCollected++ });
  const endMs = performance.now() + 300;
  while (performance.now() < endMs) await new Promise((resolve) => setImmediate(resolve));
  expect(numCollected).toBe(0);
  await expect.poll(() => numCollected, { interval: 500, timeout: 60_000 }).toBeGreaterThan(0);
  stop();
  const never = collectWhenIdle({ everyMs: 20, minGrowthBytes: 2 ** 40, collect: () => numCollected++ });
  const numBefore = numCollected;
  await new Promise((resolve) => setTimeout(resolve, 300));
  never();
  expect(numCollected).toBe(numBefore);
});
