import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import { resolveServerLimits } from '../../limits.ts';
import { readChatRequest } from './chat-request.ts';
import { toGenerateOptions, SAMPLING_FIELDS } from './sampling-fields.ts';
import { readFields } from '../fields.ts';

const limits = resolveServerLimits({ maxChoices: 4, maxMessages: 3 });
const user = { role: 'user', content: 'hi' };
const read = (more: object = {}) => readChatRequest({ model: 'm', messages: [user], ...more }, limits);
const tool = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };
const spec = { name: 'f', description: null, parameters: { type: 'object' }, isStrict: false };
const older = { name: 'f', description: 'd', strict: true };
const olderSpec = { name: 'f', description: 'd', parameters: null, isStrict: true };

test('a request with the least fields', () => {
  expect(read()).toEqual({
    generation: {
      model: 'm',
      prompts: [[user]],
      numChoices: 1,
      options: { clampMaxTokens: true },
      isSamplingOpen: true,
      constraint: null,
      tools: [],
      toolChoice: 'auto',
      canCallInParallel: true,
      fieldNames: { maxTokens: 'max_tokens' },
    },
    isStream: false,
    hasUsageChunk: false,
    isOlderForm: false,
    isStored: false,
    metadata: {},
  });
  expect(read({ model: null }).generation.model).toBe('');
});

test.each([
  [{ stream: true }, { isStream: true, hasUsageChunk: false }],
  [{ stream: true, stream_options: {} }, { hasUsageChunk: false }],
  [{ stream: true, stream_options: { include_usage: true, include_obfuscation: true } }, { hasUsageChunk: true }],
  [
    { store: true, metadata: { a: 'b' } },
    { isStored: true, metadata: { a: 'b' } },
  ],
  [{ n: 4 }, { generation: { numChoices: 4 } }],
  [{ max_completion_tokens: 7 }, { generation: { fieldNames: { maxTokens: 'max_completion_tokens' } } }],
  [{ logprobs: true }, { generation: { options: { topLogprobs: 0 } } }],
  [{ logprobs: true, top_logprobs: 20 }, { generation: { options: { topLogprobs: 20 } } }],
  [{ modalities: ['text'], audio: false }, { generation: { model: 'm' } }],
  [{ reasoning_effort: 'low', reflection: true }, { generation: { options: { reasoning: 'low', reflection: true } } }],
  [{ temperature: 2 }, { generation: { isSamplingOpen: false } }],
  [{ top_p: 1 }, { generation: { isSamplingOpen: false } }],
  [{ parallel_tool_calls: false }, { generation: { canCallInParallel: false } }],
  [{ tools: [tool] }, { isOlderForm: false, generation: { tools: [spec], toolChoice: 'auto' } }],
  [{ tools: [tool], tool_choice: 'any' }, { generation: { toolChoice: 'required' } }],
  [{ tools: [tool], tool_choice: 'required' }, { generation: { toolChoice: 'required' } }],
  [{ tools: [tool], tool_choice: 'none' }, { generation: { tools: [], toolChoice: 'none' } }],
  [
    { tools: [tool], tool_choice: { type: 'function', function: { name: 'f' } } },
    { generation: { tools: [spec], toolChoice: { name: 'f' } } },
  ],
  [
    { functions: [older] },
    { isOlderForm: true, generation: { tools: [olderSpec], toolChoice: 'auto', canCallInParallel: false } },
  ],
  [{ functions: [older], function_call: { name: 'f' } }, { generation: { toolChoice: { name: 'f' } } }],
  [
    { functions: [older], function_call: 'none', parallel_tool_calls: true },
    { isOlderForm: true, generation: { tools: [], toolChoice: 'none', canCallInParallel: false } },
  ],
  [{ prediction: { type: 'content', content: 'a' } }, { generation: { options: { prediction: 'a' } } }],
  [
    {
      prediction: {
        type: 'content',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
    },
    { generation: { options: { prediction: 'ab' } } },
  ],
])('%j', (more, request) => {
  expect(read(more)).toMatchObject(request);
});

test('log-probabilities are not wanted if they are declined', () => {
  expect(read({ logprobs: false }).generation.options).toEqual({ clampMaxTokens: true });
});

test.each([
  [{ prefix: true }, {}, true],
  [{ prefix: false }, {}, undefined],
  [{}, { continue_final_message: true }, true],
  [{ prefix: true }, { continue_final_message: false }, undefined],
])('the answer to a message with %j and %j continues it: %j', (mark, more, isContinued) => {
  const { options } = read({ messages: [user, { role: 'assistant', content: 'So', ...mark }], ...more }).generation;
  expect(options.continueFinalMessage).toBe(isContinued);
});

test.each([
  [{ messages: null }, 'messages', 400, 'is required'],
  [{ messages: [] }, 'messages', 400, 'a list of 1 or more'],
  [{ messages: [user, user, user, user] }, 'messages', 422, 'the limit is 3'],
  [{ n: 5 }, 'n', 422, 'the limit is 4'],
  [{ top_logprobs: 0 }, 'top_logprobs', 400, "left out unless 'logprobs' is true"],
  [{ logprobs: true, top_logprobs: 21 }, 'top_logprobs', 400, 'from 0 to 20'],
  [{ stream_options: {} }, 'stream_options', 400, "left out unless 'stream' is true"],
  [{ stream: false, stream_options: {} }, 'stream_options', 400, "left out unless 'stream' is true"],
  [{ modalities: ['text', 'audio'] }, 'modalities', 400, "['text']"],
  [{ modalities: 'text' }, 'modalities', 400, "['text']"],
  [{ audio: {} }, 'audio', 400, 'not supported'],
  [{ tools: [tool], functions: [older] }, 'functions', 400, 'two names'],
  [{ tools: [tool], tool_choice: 'auto', function_call: 'auto' }, 'function_call', 400, 'two names'],
  [{ function_call: 'required' }, 'function_call', 400, 'one of auto, none'],
  [{ prediction: 'a' }, 'prediction', 400, "type: 'content'"],
  [{ prediction: { type: 'text', content: 'a' } }, 'prediction', 400, "type: 'content'"],
  [{ prediction: { type: 'content', content: { length: 0 } } }, 'prediction', 400, "type: 'content'"],
  [{ prediction: { type: 'content', content: ['a'] } }, 'prediction', 400, "type: 'content'"],
  [{ prediction: { type: 'content', content: [{ type: 'image', text: 'a' }] } }, 'prediction', 400, "type: 'content'"],
  [{ prediction: { type: 'content', content: [{ type: 'text', text: 3 }] } }, 'prediction', 400, "type: 'content'"],
  [{ stream: true, stream_options: { include_usage: 1 } }, 'stream_options.include_usage', 400, 'true or false'],
])('%j is refused', (more, param, status, message) => {
  const refused = refusalOf(() => read(more));
  expect(refused).toMatchObject({ status, param });
  expect(refused!.message).toContain(message);
});

describe('metadata', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, '']));

  test.each([[{}], [many(16)], [{ ['k'.repeat(64)]: 'v'.repeat(512) }]])('%j is kept', (metadata) => {
    expect(read({ metadata }).metadata).toEqual(metadata);
  });

  test.each([['a'], [many(17)], [{ ['k'.repeat(65)]: '' }], [{ a: 'v'.repeat(513) }], [{ a: 1 }], [{ a: null }]])(
    '%j is refused',
    (metadata) => {
      expect(refusalOf(() => read({ metadata }))).toMatchObject({ status: 400, param: 'metadata' });
    },
  );
});

describe('sampling', () => {
  const options = (fields: object) => toGenerateOptions(readFields(fields, SAMPLING_FIELDS));
  const biases = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [index, 1]));

  test.each([
    [{}, {}],
    [{ stop: 'a' }, { stop: ['a'] }],
    [
      { stop: Array.from({ length: 16 }, () => 'a'.repeat(512)) },
      { stop: Array.from({ length: 16 }, () => 'a'.repeat(512)) },
    ],
    [{ stop: [] }, { stop: [] }],
    [{ logit_bias: { 0: -100, 4294967295: 100 } }, { logitBias: { 0: -100, 4294967295: 100 } }],
    [{ logit_bias: biases(4096) }, { logitBias: biases(4096) }],
    [{ top_k: -1 }, { topK: 0 }],
    [{ top_k: 0 }, { topK: 0 }],
    [{ top_k: 2147483647 }, { topK: 2147483647 }],
    [{ timeout_ms: 2147483647 }, { timeoutMs: 2147483647 }],
    [{ seed: -3 }, { seed: 3 }],
    [{ repetition_penalty: 1.5 }, { repetitionPenalty: 1.5 }],
    [{ cache_prefix: false }, { cachePrefix: false }],
    [
      { ignore_eos: false, priority: -10 },
      { ignoreEos: false, priority: -10 },
    ],
    [{ user: '' }, {}],
    [{ user: 'ada' }, { user: 'ada' }],
    // OpenAI's penalties count all tokens.
    [{ presence_penalty: 0 }, { presencePenalty: 0, penaltyWindow: -1 }],
    [{ frequency_penalty: 1 }, { frequencyPenalty: 1, penaltyWindow: -1 }],
    [
      { presence_penalty: 1, repeat_last_n: 64 },
      { presencePenalty: 1, penaltyWindow: 64 },
    ],
    [{ repeat_last_n: 0 }, { penaltyWindow: 0 }],
    [{ adapter: 'a' }, { adapter: 'a' }],
    [{ adapter: { name: 'a', scale: 2 } }, { adapter: { name: 'a', scale: 2 } }],
    [{ adapter: ['a', { name: 'b' }] }, { adapter: ['a', { name: 'b' }] }],
  ])('%j', (fields, expected) => {
    expect(options(fields)).toEqual({ ...expected, clampMaxTokens: true });
  });

  test.each([
    [{ stop: '' }, 'stop'],
    [{ stop: ['a', ''] }, 'stop'],
    [{ stop: ['a', 3] }, 'stop'],
    [{ stop: { length: 0 } }, 'stop'],
    [{ stop: 'a'.repeat(513) }, 'stop'],
    [{ stop: Array.from({ length: 17 }, () => 'a') }, 'stop'],
    [{ logit_bias: [] }, 'logit_bias'],
    [{ logit_bias: biases(4097) }, 'logit_bias'],
    [{ logit_bias: { a: 1 } }, 'logit_bias'],
    [{ logit_bias: { 5: 100.5 } }, 'logit_bias.5'],
    [{ logit_bias: { 5: '1' } }, 'logit_bias.5'],
    [{ logit_bias: { 5: NaN } }, 'logit_bias.5'],
    [{ top_k: -2 }, 'top_k'],
    [{ top_k: 2147483648 }, 'top_k'],
    [{ timeout_ms: 0 }, 'timeout_ms'],
    [{ adapter: 3 }, 'adapter'],
    [{ adapter: ['a', 3] }, 'adapter'],
    [{ adapter: null, session: '' }, 'session'],
  ])('%j is refused', (fields, param) => {
    expect(refusalOf(() => options(fields))).toMatchObject({ status: 400, param });
  });
});
