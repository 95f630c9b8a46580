import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import { resolveServerLimits } from '../../limits.ts';
import { hasCacheControl } from './cache-control.ts';
import { isAnthropicClient } from './client.ts';
import { readCountRequest, readMessagesRequest } from './messages-request.ts';
import { toolChoiceField, toolField } from './tools.ts';

const limits = resolveServerLimits({});
const user = { role: 'user', content: 'hi' };
const BODY = { model: 'm', max_tokens: 9, messages: [user] };
const read = (more: object = {}) => readMessagesRequest({ ...BODY, ...more }, limits);
const schema = { type: 'object' };
const constraint = { kind: 'json_schema', name: 'output', schema, isStrict: true };
const format = { type: 'json_schema', schema };
const tool = { name: 'f', input_schema: schema };
const spec = { name: 'f', description: null, parameters: schema, isStrict: false };

test('a request with the least fields', () => {
  expect(read()).toEqual({
    generation: {
      model: 'm',
      prompts: [[user]],
      numChoices: 1,
      options: { reasoning: 'none', maxTokens: 9, clampMaxTokens: true },
      constraint: null,
      tools: [],
      toolChoice: 'auto',
      canCallInParallel: true,
      isSamplingOpen: true,
      fieldNames: { maxTokens: 'max_tokens', grammar: 'output_config.format' },
    },
    isStream: false,
    hasThinking: false,
    hasCacheControl: false,
  });
});

test.each([
  [{ stream: true }, { isStream: true }],
  [{ thinking: { type: 'disabled' } }, { hasThinking: false, generation: { options: { reasoning: 'none' } } }],
  [
    { thinking: { type: 'enabled', budget_tokens: 1024 } },
    { hasThinking: true, generation: { options: { reasoning: 'on' } } },
  ],
  [{ thinking: { type: 'adaptive' } }, { hasThinking: true, generation: { options: { reasoning: 'auto' } } }],
  [{ thinking: { type: 'between_tools' } }, { hasThinking: true, generation: { options: { reasoning: 'auto' } } }],
  [{ cache_control: { type: 'ephemeral' } }, { hasCacheControl: true, generation: { options: { keepPrefix: true } } }],
  [{ max_tokens: 1 }, { generation: { options: { maxTokens: 1 } } }],
  [{ top_k: 2147483647 }, { generation: { options: { topK: 2147483647 } } }],
  [{ stop_sequences: ['a', 'b'] }, { generation: { options: { stop: ['a', 'b'] } } }],
  [{ temperature: 0 }, { generation: { isSamplingOpen: false, options: { temperature: 0 } } }],
  [{ system: 'be kind' }, { generation: { prompts: [[{ role: 'system', content: 'be kind' }, user]] } }],
  [{ output_config: { format } }, { generation: { constraint } }],
  [{ output_config: { effort: 'low' } }, { generation: { constraint: null } }],
  [{ output_format: format }, { generation: { constraint } }],
  [{ tools: [tool] }, { generation: { tools: [spec], toolChoice: 'auto', canCallInParallel: true } }],
  [{ tools: [tool], tool_choice: { type: 'any' } }, { generation: { tools: [spec], toolChoice: 'required' } }],
  [{ tools: [tool], tool_choice: { type: 'none' } }, { generation: { tools: [], toolChoice: 'none' } }],
  [
    { tools: [tool], tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    { generation: { toolChoice: 'auto', canCallInParallel: false } },
  ],
])('%j', (more, request) => {
  expect(read(more)).toMatchObject(request);
});

test('-1 is as many tokens as fit', () => {
  expect(read({ max_tokens: -1 }).generation.options).toEqual({ reasoning: 'none', clampMaxTokens: true });
});

test('a request may leave out its model', () => {
  expect(read({ model: null }).generation.model).toBe('');
});

test.each([
  [{ max_tokens: null }, 'max_tokens'],
  [{ messages: [] }, 'messages'],
  [{ top_k: 2147483648 }, 'top_k'],
  [{ top_k: -1 }, 'top_k'],
  [{ temperature: 1.1 }, 'temperature'],
  [{ output_config: { format }, output_format: format }, 'output_format'],
  [{ output_config: { format: { schema } } }, 'output_config.format.type'],
  [{ output_format: { type: 'json_schema' } }, 'output_format.schema'],
  [{ thinking: {} }, 'thinking.type'],
  [{ mcp_servers: [{}] }, 'mcp_servers'],
])('%j is refused', (more, param) => {
  expect(refusalOf(() => read(more))).toMatchObject({ status: 400, param });
});

describe('an answer continues the last message', () => {
  const use = { type: 'tool_use', id: '1', name: 'f', input: {} };
  const isContinued = (content: unknown): boolean | undefined =>
    read({ messages: [user, { role: 'assistant', content }] }).generation.options.continueFinalMessage;

  test('if it is of the assistant and has no calls', () => {
    expect([isContinued('So'), isContinued([use])]).toEqual([true, undefined]);
    expect(read().generation.options.continueFinalMessage).toBeUndefined();
  });
});

test('counting reads the fields of a prompt', () => {
  const { max_tokens: _, ...body } = BODY;
  expect(readCountRequest({ ...body, system: 'be kind' }, limits)).toMatchObject({
    prompts: [[{ role: 'system', content: 'be kind' }, user]],
    options: { reasoning: 'none' },
  });
  expect(refusalOf(() => readCountRequest(BODY, limits))).toMatchObject({ param: 'max_tokens' });
});

describe('marks for the cache', () => {
  const cache_control = { type: 'ephemeral' };

  test.each([
    [{ cache_control }],
    [{ tools: [{ name: 'f' }, { name: 'g', cache_control }] }],
    [{ system: [{ type: 'text', text: 'a', cache_control }] }],
    [{ messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control }] }] }],
  ])('are found in %j', (body) => {
    expect(hasCacheControl(body)).toBe(true);
  });

  test.each([
    ['text'],
    [{}],
    [{ cache_control: null, tools: [null, { cache_control: null }], system: 'a', messages: ['a', user] }],
    [{ messages: [{ role: 'user', content: [{ type: 'text', text: 'a' }] }] }],
  ])('are not found in %j', (body) => {
    expect(hasCacheControl(body)).toBe(false);
  });
});

describe('tools', () => {
  test.each([
    [tool, spec],
    [
      { ...tool, type: 'custom', description: 'd', strict: true },
      { ...spec, description: 'd', isStrict: true },
    ],
    [{ ...tool, strict: false, type: null }, spec],
  ])('%j', (value, expected) => {
    expect(toolField.read(value, 'tools[0]')).toEqual(expected);
  });

  test.each([
    [{ type: 'bash_20250124', name: 'bash' }, 'tools[0].type', 'unsupported'],
    [{ ...tool, type: 3 }, 'tools[0].type', 'invalid_value'],
    [{ name: 'f' }, 'tools[0].input_schema', 'missing_required_parameter'],
    ['f', 'tools[0]', 'invalid_value'],
  ])('%j is refused', (value, param, code) => {
    expect(refusalOf(() => toolField.read(value, 'tools[0]'))).toMatchObject({ status: 400, param, code });
  });

  test.each([
    [{ type: 'auto' }, { choice: 'auto', canCallInParallel: true }],
    [
      { type: 'any', disable_parallel_tool_use: false },
      { choice: 'required', canCallInParallel: true },
    ],
    [
      { type: 'tool', name: 'f', disable_parallel_tool_use: true },
      { choice: { name: 'f' }, canCallInParallel: false },
    ],
  ])('are chosen by %j', (value, choice) => {
    expect(toolChoiceField.read(value, 'tool_choice')).toEqual(choice);
  });

  test.each([[{ type: 'tool' }], [{ type: 'auto', name: 'f' }]])('cannot be chosen by %j', (value) => {
    expect(refusalOf(() => toolChoiceField.read(value, 'tool_choice'))).toMatchObject({ param: 'tool_choice.name' });
  });
});

test.each([
  ['/v1/messages', {}, true],
  ['/v1/messages/count_tokens', {}, true],
  ['/v1/models', { 'anthropic-version': '2023-06-01' }, true],
  ['/v1/messages2', {}, false],
  ['/v1/models', {}, false],
])('%s with the headers %j: %j', (path, headers, isClient) => {
  expect(isAnthropicClient(new Request(`http://localhost${path}`, { headers }))).toBe(isClient);
});
