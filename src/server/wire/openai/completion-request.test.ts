import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import { resolveServerLimits } from '../../limits.ts';
import { readCompletionRequest } from './completion-request.ts';

const limits = resolveServerLimits({ maxChoices: 4 });
const read = (more: object = {}) => readCompletionRequest({ model: 'm', prompt: 'a', ...more }, limits);

test('a request with the least fields', () => {
  expect(read()).toEqual({
    generation: {
      model: 'm',
      prompts: ['a'],
      numChoices: 1,
      options: { maxTokens: 16, clampMaxTokens: true },
      isSamplingOpen: true,
      constraint: null,
      tools: [],
      toolChoice: 'auto',
      canCallInParallel: true,
      fieldNames: { maxTokens: 'max_tokens', fill: 'suffix' },
    },
    isStream: false,
    hasUsageChunk: false,
    hasEcho: false,
    isPromptOnly: false,
  });
  expect(read({ model: null }).generation.model).toBe('');
});

describe('a prompt', () => {
  test.each([
    ['', ['']],
    [[0, 2147483647], [[0, 2147483647]]],
    [
      ['a', ''],
      ['a', ''],
    ],
    [
      [[1, 2], [3]],
      [[1, 2], [3]],
    ],
    [
      ['a', [1]],
      ['a', [1]],
    ],
    [
      ['a', 'b', 'c', 'd'],
      ['a', 'b', 'c', 'd'],
    ],
  ])('%j', (prompt, prompts) => {
    expect(read({ prompt }).generation.prompts).toEqual(prompts);
  });

  test.each([
    [[], 'prompt', 400],
    [3, 'prompt', 400],
    [{ length: 1 }, 'prompt', 400],
    [['a', []], 'prompt[1]', 400],
    [['a', 3], 'prompt[1]', 400],
    [[1.5], 'prompt[0]', 400],
    [[-1], 'prompt[0]', 400],
    [[2147483648], 'prompt[0]', 400],
    [[[1], ['a']], 'prompt[1]', 400],
    [['a', 'b', 'c', 'd', 'e'], 'prompt', 422],
  ])('%j is refused', (prompt, param, status) => {
    expect(refusalOf(() => read({ prompt }))).toMatchObject({ param, status });
  });
});

test.each([
  [
    { stream: true, stream_options: { include_usage: true } },
    { isStream: true, hasUsageChunk: true },
  ],
  [{ n: 2, best_of: 2 }, { generation: { numChoices: 2 } }],
  [{ prompt: ['a', 'b'], n: 2 }, { generation: { numChoices: 2 } }],
  [{ max_tokens: 1 }, { isPromptOnly: false, generation: { options: { maxTokens: 1 } } }],
  [{ n_predict: 3 }, { generation: { options: { maxTokens: 3 }, fieldNames: { maxTokens: 'n_predict' } } }],
  [
    { max_tokens: 0, echo: true },
    { isPromptOnly: true, hasEcho: true, generation: { options: { maxTokens: 1 } } },
  ],
  [
    { echo: true, logprobs: 0 },
    { hasEcho: true, generation: { options: { promptLogprobs: true, topLogprobs: 0 } } },
  ],
  [{ suffix: ' end' }, { generation: { options: { fill: { suffix: ' end' }, corrections: false } } }],
  [{ prediction: { type: 'content', content: 'b' } }, { generation: { options: { prediction: 'b' } } }],
  [{ temperature: 0 }, { generation: { isSamplingOpen: false } }],
])('%j', (more, request) => {
  expect(read(more)).toMatchObject(request);
});

test.each([
  [{ max_tokens: -1 }, {}],
  [{ logprobs: 5 }, { maxTokens: 16, topLogprobs: 5 }],
  [{ echo: true }, { maxTokens: 16 }],
  [{ echo: true, suffix: '' }, { maxTokens: 16 }],
])('the options of %j', (more, options) => {
  expect(read(more).generation.options).toEqual({ ...options, clampMaxTokens: true });
});

test('a stream may have log-probabilities, or the prompt', () => {
  expect(read({ stream: true, logprobs: 1 }).isStream).toBe(true);
  expect(read({ stream: true, echo: true }).isStream).toBe(true);
});

test.each([
  [{ prompt: null }, 'prompt', 400, 'is required'],
  [{ suffix: 'b', echo: true }, 'suffix', 400, "left out with 'echo'"],
  [{ suffix: 'b', prompt: ['a', [1]] }, 'suffix', 400, 'token ids'],
  [{ best_of: 2 }, 'best_of', 400, "left out or equal to 'n' (1)"],
  [{ best_of: 2, n: 3 }, 'best_of', 400, "left out or equal to 'n' (3)"],
  [{ echo: true, logprobs: 0, stream: true }, 'logprobs', 400, "left out with 'echo' and 'stream'"],
  [{ stream_options: {} }, 'stream_options', 400, "left out unless 'stream' is true"],
  [{ prompt: ['a', 'b', 'c'], n: 2 }, 'n', 422, '3 prompts with 2 answers each exceed the limit of 4'],
  [{ max_tokens: 0 }, 'max_tokens', 400, "at least 1 without 'echo'"],
  [{ n_predict: 0, echo: false }, 'n_predict', 400, "at least 1 without 'echo'"],
  [{ max_tokens: -2 }, 'max_tokens', 400, 'a positive integer, or -1'],
  [{ logprobs: 6 }, 'logprobs', 400, 'from 0 to 5'],
])('%j is refused', (more, param, status, message) => {
  const refused = refusalOf(() => read(more));
  expect(refused).toMatchObject({ status, param });
  expect(refused!.message).toContain(message);
});
