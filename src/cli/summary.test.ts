import { expect, test } from 'vitest';
import type { GenerateSummary } from '../runtime/generation-types.ts';
import { describeAnswer } from './summary.ts';

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
