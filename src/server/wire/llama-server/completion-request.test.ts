import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import { resolveServerLimits } from '../../limits.ts';
import { type NativeContext, readInfill, readNativeCompletion } from './completion-request.ts';

const context: NativeContext = {
  limits: resolveServerLimits({ maxChoices: 2 }),
  modelOf: (name) => name ?? 'only',
  adapterOf: (model, index) => (index < 2 ? `${model}-${index}` : null),
};
const read = (more: object = {}) => readNativeCompletion({ prompt: 'a', ...more }, context);
const infill = (more: object = {}) => readInfill({ input_prefix: 'a', input_suffix: 'b', ...more }, context);
// llama-server's own.
const DEFAULTS = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 };
const biases = (count: number) => Array.from({ length: count }, (_, index) => [index, 1]);

test('a request with the least fields has the defaults of llama-server', () => {
  expect(read()).toEqual({
    generation: {
      model: 'only',
      prompts: ['a'],
      numChoices: 1,
      options: { ...DEFAULTS, parseSpecial: true },
      constraint: null,
      tools: [],
      toolChoice: 'auto',
      canCallInParallel: true,
      fieldNames: { maxTokens: 'n_predict', fill: 'input_suffix', grammar: 'grammar' },
    },
    isStream: false,
    isPromptOnly: false,
    hasTokens: false,
  });
});

test.each([
  [{ model: 'm' }, { generation: { model: 'm' } }],
  [{ prompt: ['a', [1]] }, { generation: { prompts: ['a', [1]] } }],
  [
    { stream: true, return_tokens: true },
    { isStream: true, hasTokens: true },
  ],
  [{ n_predict: 0 }, { isPromptOnly: true, generation: { options: { maxTokens: 1, clampMaxTokens: true } } }],
  [{ n_predict: 5 }, { isPromptOnly: false, generation: { options: { maxTokens: 5, clampMaxTokens: true } } }],
  [{ n_predict: 2147483647 }, { generation: { options: { maxTokens: 2147483647 } } }],
  [{ grammar: '', json_schema: null }, { generation: { constraint: null } }],
  [
    { grammar: 'root ::= "a"' },
    { generation: { constraint: { kind: 'grammar', grammar: 'root ::= "a"' }, fieldNames: { grammar: 'grammar' } } },
  ],
  [
    { grammar: '', json_schema: { type: 'object' } },
    {
      generation: {
        constraint: { kind: 'json_schema', name: 'answer', schema: { type: 'object' }, isStrict: true },
        fieldNames: { grammar: 'json_schema' },
      },
    },
  ],
])('%j', (more, request) => {
  expect(read(more)).toMatchObject(request);
});

describe('options', () => {
  test.each([
    [{ n_predict: -1 }, {}],
    [{ n_predict: -2, seed: -1, n_probs: 0 }, {}],
    [
      { temperature: 0, top_k: -1, top_p: 1, min_p: 0 },
      { temperature: 0, topK: 0, topP: 1, minP: 0 },
    ],
    [{ top_k: 5 }, { topK: 5 }],
    [{ seed: 0 }, { seed: 0 }],
    [{ n_probs: 1 }, { topLogprobs: 1 }],
    [
      { repeat_penalty: 1.1, repeat_last_n: -1 },
      { repetitionPenalty: 1.1, penaltyWindow: -1 },
    ],
    [
      { ignore_eos: true, cache_prompt: false },
      { ignoreEos: true, cachePrefix: false },
    ],
    [{ logit_bias: [] }, { logitBias: {} }],
    [
      {
        logit_bias: [
          [5, 1.5],
          ['6', false],
          [7, 1e9],
          [8, -1e9],
        ],
      },
      { logitBias: { 5: 1.5, 6: -100, 7: 100, 8: -100 } },
    ],
    [{ logit_bias: { 5: 1.5, 4294967295: false } }, { logitBias: { 5: 1.5, 4294967295: -100 } }],
    [{ logit_bias: biases(4096) }, { logitBias: Object.fromEntries(biases(4096)) }],
    [{ lora: [] }, { adapter: null }],
    [{ lora: [{ id: 0, scale: 0 }] }, { adapter: null }],
    [
      { lora: [{ id: 0 }, { id: 1, scale: 0.5 }], model: 'm' },
      {
        adapter: [
          { name: 'm-0', scale: 1 },
          { name: 'm-1', scale: 0.5 },
        ],
      },
    ],
    [{ adapter: 'x' }, { adapter: 'x' }],
  ])('%j', (more, options) => {
    expect(read(more).generation.options).toEqual({ ...DEFAULTS, parseSpecial: true, ...options });
  });
});

test.each([
  [{ prompt: null }, 'prompt', 400],
  [{ prompt: ['a', 'b', 'c'] }, 'prompt', 422],
  [{ n_predict: -3 }, 'n_predict', 400],
  [{ n_predict: 2147483648 }, 'n_predict', 400],
  [{ n_probs: 21 }, 'n_probs', 400],
  [{ grammar: 'root ::= "a"', json_schema: {} }, 'grammar', 400],
  [{ logit_bias: 'a' }, 'logit_bias', 400],
  [{ logit_bias: biases(4097) }, 'logit_bias', 400],
  [{ logit_bias: [5] }, 'logit_bias[0]', 400],
  [
    {
      logit_bias: [
        [5, 1],
        ['a', 1],
      ],
    },
    'logit_bias[1]',
    400,
  ],
  [{ logit_bias: [[{ toString: 1, valueOf: 1 }, 1]] }, 'logit_bias[0]', 400],
  [{ logit_bias: [[[5], 1]] }, 'logit_bias[0]', 400],
  [{ logit_bias: [[5, true]] }, 'logit_bias[0]', 400],
  [{ logit_bias: [[5, '1']] }, 'logit_bias[0]', 400],
  [{ logit_bias: [[5, NaN]] }, 'logit_bias[0]', 400],
  [{ lora: [{ id: 0 }, { id: 2 }] }, 'lora[1].id', 400],
  [{ lora: [{ scale: 1 }] }, 'lora[0].id', 400],
])('%j is refused', (more, param, status) => {
  expect(refusalOf(() => read(more))).toMatchObject({ status, param });
});

describe('infill', () => {
  test('has the text before, the text after and other files', () => {
    const { generation } = infill({
      input_extra: [{ text: 'x' }, { filename: 'b.ts', text: 'y' }, { filename: null, text: 'z' }],
      prompt: 'start',
    });
    expect(generation).toMatchObject({ model: 'only', prompts: ['a'] });
    expect(generation.options).toEqual({
      ...DEFAULTS,
      corrections: false,
      fill: {
        suffix: 'b',
        start: 'start',
        files: [
          { name: 'file 1', text: 'x' },
          { name: 'b.ts', text: 'y' },
          { name: 'file 3', text: 'z' },
        ],
      },
    });
  });

  test('needs only the texts before and after', () => {
    expect(infill({ lora: [{ id: 1 }] }).generation.options).toEqual({
      ...DEFAULTS,
      corrections: false,
      fill: { suffix: 'b', start: '', files: [] },
      adapter: [{ name: 'only-1', scale: 1 }],
    });
    expect(refusalOf(() => infill({ input_suffix: null }))).toMatchObject({ param: 'input_suffix' });
    expect(refusalOf(() => infill({ input_extra: [{}] }))).toMatchObject({ param: 'input_extra[0].text' });
  });
});
