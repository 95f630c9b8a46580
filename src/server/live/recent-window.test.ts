import { expect, test } from 'vitest';
import { createRecentWindow } from './recent-window.ts';

test('rates cover the last five whole seconds, percentiles the last minute', () => {
  let nowMs = 100_000;
  const window = createRecentWindow(() => nowMs);
  expect(window.read()).toEqual({
    tokensPerSecond: { prompt: 0, generated: 0 },
    firstTokenMs: null,
    interTokenMs: null,
  });
  window.count('generated', 50);
  window.count('prompt', 10);
  window.time('firstToken', 100);
  // The current second does not count yet.
  expect(window.read().tokensPerSecond).toEqual({ prompt: 0, generated: 0 });
  expect(window.read().firstTokenMs).toMatchObject({ count: 1 });
  nowMs += 1000;
  expect(window.read().tokensPerSecond).toEqual({ prompt: 2, generated: 10 });
  nowMs += 4999;
  expect(window.read().tokensPerSecond).toEqual({ prompt: 2, generated: 10 });
  nowMs += 1;
  expect(window.read().tokensPerSecond).toEqual({ prompt: 0, generated: 0 });
  nowMs = 159_999;
  expect(window.read().firstTokenMs).toMatchObject({ count: 1 });
  nowMs = 160_000;
  expect(window.read().firstTokenMs).toBeNull();
});

test('a slot is overwritten after a minute, not added to', () => {
  let nowMs = 0;
  const window = createRecentWindow(() => nowMs);
  window.count('generated', 1000);
  window.time('interToken', 1);
  nowMs = 60_000;
  window.count('generated', 5);
  window.time('interToken', 50);
  nowMs = 61_000;
  expect(window.read().tokensPerSecond.generated).toBe(1);
  expect(window.read().interTokenMs!.count).toBe(1);
});
