import { expect, test } from 'vitest';
import { resolveGenerateParams } from './generate-params.ts';

test('fills in defaults', () => {
  expect(resolveGenerateParams()).toEqual({
    maxTokens: 256,
    temperature: 0.7,
    topP: 1,
    topK: 0,
    minP: 0.05,
    typicalP: 1,
    repetitionPenalty: 1,
    presencePenalty: 0,
    frequencyPenalty: 0,
    penaltyWindow: 64,
    logitBias: new Map(),
    seed: null,
    stop: [],
    stopTokenIds: [],
    minTokens: 0,
    topLogprobs: null,
    ignoreEos: false,
  });
});

test.each([
  [{ max_tokens: 5 }, 'unknown option "max_tokens"'],
  [{ maxTokens: 0 }, 'integer from 1'],
  [{ minTokens: -1 }, '"minTokens"'],
  [{ stopTokenIds: [1.5] }, 'a list of at most 64 token ids'],
  [{ stopTokenIds: Array(65).fill(1) }, 'a list of at most 64 token ids'],
  [{ temperature: -0.1 }, '"temperature"'],
  [{ temperature: Number.NaN }, '"temperature"'],
  [{ temperature: '1' }, '"temperature"'],
  [{ topP: 1.01 }, '"topP"'],
  [{ topK: 1.5 }, '"topK"'],
  [{ penaltyWindow: -2 }, '"penaltyWindow"'],
  [{ repetitionPenalty: 0 }, '"repetitionPenalty"'],
  [{ seed: -1 }, '"seed"'],
  [{ topLogprobs: 21 }, '"topLogprobs"'],
  [{ stop: 'x' }, '"stop"'],
  [{ stop: [''] }, '"stop"'],
  [{ stop: ['x'.repeat(513)] }, '"stop"'],
  [{ stop: Array.from({ length: 17 }, () => 'x') }, 'at most 16'],
  [{ logitBias: [1] }, 'object or a Map'],
  [{ logitBias: { a: 1 } }, 'not a token id: "a"'],
  [{ logitBias: { '-1': 1 } }, 'not a token id: "-1"'],
  [{ logitBias: new Map([[1.5, 1]]) }, 'not a token id: 1.5'],
  [{ logitBias: { 1: 101 } }, 'from -100 to 100, got 101'],
  [{ logitBias: { 1: Number.NaN } }, 'got NaN'],
  [{ logitBias: Object.fromEntries(Array.from({ length: 4097 }, (_, i) => [i, 1])) }, '4097 entries'],
])('%j is refused', (options, message) => {
  expect(() => resolveGenerateParams(options as object)).toThrow(message);
  expect(() => resolveGenerateParams(options as object)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
});

test('accepts a logit bias as an object or a Map', () => {
  expect(resolveGenerateParams({ logitBias: { 7: -100, 8: 2 } }).logitBias).toEqual(
    new Map([
      [7, -100],
      [8, 2],
    ]),
  );
  expect(resolveGenerateParams({ logitBias: new Map([[7, 1]]) }).logitBias).toEqual(new Map([[7, 1]]));
});
