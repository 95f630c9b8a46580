import { expect, test } from 'vitest';
import type { GenerateSummary } from '../runtime/generation-types.ts';
import { describeAnswer, describeSplit } from './summary.ts';

const answer = (promptTokens: number, finishReason: GenerateSummary['finishReason']): GenerateSummary => ({
  finishReason,
  stopString: null,
  seed: 1,
  usage: {
    promptTokens,
    cachedTokens: 0,
    completionTokens: 10,
    totalTokens: promptTokens + 10,
    reasoningTokens: 0,
    acceptedDraftTokens: 0,
    rejectedDraftTokens: 0,
  },
  timings: {
    firstTokenMs: 5,
    queuedMs: 0,
    promptMs: 5,
    generateMs: 10,
    promptTokensPerSecond: 100,
    tokensPerSecond: 1000,
  },
});

test('names the flag that limits a truncated answer', () => {
  expect(describeAnswer(answer(5, 'length'), 64)).toMatch(/cut off after 10 tokens \(--max-tokens\)$/);
  expect(describeAnswer(answer(54, 'length'), 64)).toMatch(/cut off after 10 tokens \(--context\)$/);
  expect(describeAnswer(answer(54, 'stop'), 64)).not.toContain('cut off');
});

test('shows the cached tokens of a prompt', () => {
  const uncached = answer(54, 'stop');
  expect(describeAnswer(uncached, 64)).toContain('prompt 54 tokens, 100 tokens/s');
  const usage = { ...uncached.usage, cachedTokens: 50 };
  expect(describeAnswer({ ...uncached, usage }, 64)).toContain('prompt 54 tokens (50 cached), 100 tokens/s');
});

const side = (mebibytes: number) => ({ weightBytes: mebibytes * 2 ** 20, kvBytes: 2 ** 20 });

test('names the layers and bytes of each side', () => {
  const cases = [
    [5, side(3), { weightBytes: 0, kvBytes: 0 }, 'all 5 layers on the GPU (weights 3.0 MiB, KV pages 1.0 MiB)'],
    [
      0,
      { weightBytes: 0, kvBytes: 0 },
      side(4),
      'no layers on the GPU, 5 on the processor (weights 4.0 MiB, KV pages 1.0 MiB)',
    ],
    [
      2,
      side(3),
      side(4),
      '2 of 5 layers on the GPU (weights 3.0 MiB, KV pages 1.0 MiB), 3 on the processor (weights 4.0 MiB, KV pages 1.0 MiB)',
    ],
    [
      5,
      side(3),
      side(4),
      '5 of 5 layers on the GPU (weights 3.0 MiB, KV pages 1.0 MiB), the rest on the processor (weights 4.0 MiB, KV pages 1.0 MiB)',
    ],
  ] as const;
  for (const [numGpuLayers, gpu, cpu, expected] of cases) {
    expect(describeSplit({ split: { numLayers: 5, numGpuLayers, gpu, cpu } })).toBe(expected);
  }
  expect(describeSplit({})).toBeNull();
});
