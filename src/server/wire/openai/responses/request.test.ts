import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../../test/support/refusal-of.ts';
import { resolveServerLimits } from '../../../limits.ts';
import { collectIgnored } from '../../fields.ts';
import {
  readConversation,
  readItems,
  readMetadata,
  toConversationItems,
  toTurns,
  writeConversation,
} from '../conversation.ts';
import { promptOf, readResponseRequest, type ResponseRequest, turnsOf } from './request.ts';

const limits = resolveServerLimits({ maxMessages: 3 });
const read = (more: object = {}) => readResponseRequest({ model: 'm', input: 'hi', ...more }, limits);
const user = { role: 'user', content: 'hi' } as const;
const tool = { type: 'function', name: 'f', parameters: { type: 'object' } };
const spec = { name: 'f', description: null, parameters: { type: 'object' }, isStrict: true };
const mcp = { type: 'mcp', server_label: 'wiki' };

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
      fieldNames: { maxTokens: 'max_output_tokens', reasoning: 'reasoning.effort', grammar: 'text.format' },
    },
    instructions: null,
    input: [user],
    previousId: null,
    conversationId: null,
    isStream: false,
    isStored: true,
    metadata: {},
    echo: {
      background: false,
      instructions: null,
      max_output_tokens: null,
      max_tool_calls: null,
      metadata: {},
      parallel_tool_calls: true,
      previous_response_id: null,
      reasoning: { effort: null, summary: null },
      service_tier: 'default',
      store: true,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      top_logprobs: 0,
      truncation: 'disabled',
    },
    mcpTools: [],
    mcpChoice: null,
    approvals: { requests: new Map(), responses: new Map() },
  });
  expect(read({ model: null }).generation.model).toBe('');
});

test.each([
  [{ stream: true }, { isStream: true }],
  [{ store: false }, { isStored: false, echo: { store: false } }],
  [{ metadata: { a: 'b' } }, { metadata: { a: 'b' }, echo: { metadata: { a: 'b' } } }],
  [{ max_output_tokens: 5 }, { generation: { options: { maxTokens: 5 } }, echo: { max_output_tokens: 5 } }],
  [{ instructions: 'be kind' }, { instructions: 'be kind', echo: { instructions: 'be kind' } }],
  [{ previous_response_id: 'resp_1' }, { previousId: 'resp_1', echo: { previous_response_id: 'resp_1' } }],
  [{ conversation: 'conv_1' }, { conversationId: 'conv_1', echo: { conversation: { id: 'conv_1' } } }],
  [{ conversation: { id: 'conv_1' } }, { conversationId: 'conv_1' }],
  [{ user: 'ada' }, { generation: { options: { user: 'ada' } }, echo: { user: 'ada' } }],
  [{ temperature: 0 }, { generation: { isSamplingOpen: false } }],
  [{ parallel_tool_calls: false }, { generation: { canCallInParallel: false }, echo: { parallel_tool_calls: false } }],
  [
    { reasoning: { effort: 'low', summary: 'auto' } },
    { generation: { options: { reasoning: 'low' } }, echo: { reasoning: { effort: 'low', summary: null } } },
  ],
  [{ include: ['message.output_text.logprobs'] }, { generation: { options: { topLogprobs: 0 } } }],
  [
    { include: ['message.output_text.logprobs'], top_logprobs: 3 },
    { generation: { options: { topLogprobs: 3 } }, echo: { top_logprobs: 3 } },
  ],
  [
    { text: { format: { type: 'json_object' } } },
    { generation: { constraint: { kind: 'json_object' } }, echo: { text: { format: { type: 'json_object' } } } },
  ],
  [{ tools: [tool] }, { generation: { tools: [spec] }, mcpTools: [], echo: { tools: [tool] } }],
  [{ tools: [{ ...tool, strict: false }] }, { generation: { tools: [{ ...spec, isStrict: false }] } }],
  [
    { tools: [tool], tool_choice: { type: 'function', name: 'f' } },
    {
      generation: { toolChoice: { name: 'f' } },
      mcpChoice: null,
      echo: { tool_choice: { type: 'function', name: 'f' } },
    },
  ],
  [{ tools: [tool], tool_choice: 'required' }, { generation: { tools: [spec], toolChoice: 'required' } }],
  [
    { tools: [tool, mcp], tool_choice: 'none' },
    { generation: { tools: [], toolChoice: 'none' }, mcpTools: [] },
  ],
  [{ tools: [tool, mcp] }, { generation: { tools: [spec] }, mcpTools: [{ label: 'wiki', url: null }] }],
  [
    { tools: [mcp], tool_choice: { type: 'mcp', server_label: 'wiki', name: 'search' } },
    { generation: { tools: [], toolChoice: 'auto' }, mcpChoice: { label: 'wiki', name: 'search' } },
  ],
  [
    { input: [user, { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true }] },
    { input: [user], approvals: { responses: new Map([['mcpr_1', true]]) } },
  ],
])('%j', (more, request) => {
  expect(read(more)).toMatchObject(request);
});

test('log-probabilities are only computed if they are included', () => {
  expect(read({ top_logprobs: 3, include: ['other'] }).generation.options).toEqual({ clampMaxTokens: true });
});

test('settings of reasoning other than its effort are ignored by name, unless they ask for nothing', () => {
  const namesOf = (reasoning: object) => collectIgnored(() => read({ reasoning })).names;
  expect(namesOf({ summary: 'detailed' })).toEqual(['reasoning.summary']);
  expect(namesOf({ effort: null, summary: 'auto', generate_summary: 'none', more: null })).toEqual([]);
});

test.each([
  [{ input: null }, 'input'],
  [{ previous_response_id: 'resp_1', conversation: 'conv_1' }, 'conversation'],
  [{ conversation: {} }, 'conversation.id'],
  [{ conversation: '' }, 'conversation'],
  [{ reasoning: 'low' }, 'reasoning'],
  [{ reasoning: { effort: 'much' } }, 'reasoning.effort'],
  [{ background: true }, 'background'],
  [{ tools: [{ type: 'web_search' }] }, 'tools[0].type'],
  [{ tools: [{ type: 'function' }] }, 'tools[0].name'],
  [{ tools: ['f'] }, 'tools[0]'],
  [{ tools: [{ ...tool, type: 3 }] }, 'tools[0].type'],
  [{ tool_choice: 'any' }, 'tool_choice'],
  [{ tool_choice: { type: 'web_search' } }, 'tool_choice.type'],
  [{ tool_choice: { type: 'mcp', server_label: 'wiki' } }, 'tool_choice.name'],
  [{ tool_choice: { type: 'function' } }, 'tool_choice.name'],
])('%j is refused', (more, param) => {
  expect(refusalOf(() => read(more))).toMatchObject({ status: 400, param });
});

describe('the turns of a request', () => {
  const request = { input: [user], instructions: null } as unknown as ResponseRequest;
  const history = (count: number) => ({ messages: Array.from({ length: count }, () => user), owners: [], items: [] });

  test('come after the earlier ones, up to the limit', () => {
    expect(turnsOf(request, history(2), limits)).toHaveLength(3);
    expect(refusalOf(() => turnsOf(request, history(3), limits))).toMatchObject({ status: 400, param: 'input' });
  });

  test('come after the instructions', () => {
    expect(promptOf(request, [user])).toEqual([user]);
    expect(promptOf({ ...request, instructions: 'be kind' }, [user])).toEqual([
      { role: 'system', content: 'be kind' },
      user,
    ]);
  });
});

describe('a conversation', () => {
  test('is read with its items and metadata', () => {
    expect(readConversation({}, limits)).toEqual({ items: [], metadata: {} });
    expect(readConversation({ items: [user], metadata: { a: 'b' } }, limits)).toEqual({
      items: [user],
      metadata: { a: 'b' },
    });
    expect(readMetadata({ metadata: null })).toEqual({});
    expect(readMetadata({ metadata: { a: 'b' } })).toEqual({ a: 'b' });
    expect(readItems({ items: [user, user, user] }, limits)).toHaveLength(3);
    expect(refusalOf(() => readItems({ items: [] }, limits))).toMatchObject({ status: 400, param: 'items' });
    expect(refusalOf(() => readItems({ items: [user, user, user, user] }, limits))).toMatchObject({ status: 422 });
  });

  test('is the same as items and as turns', () => {
    const turns = [user, { role: 'assistant', content: 'a' } as const];
    const items = toConversationItems(turns, '7');
    expect(items.map(({ id }) => id)).toEqual(['msg_7_0', 'msg_7_1']);
    expect(toTurns(items)).toEqual(turns);
  });

  test('is written in seconds', () => {
    expect(writeConversation({ id: 'conv_1', createdMs: 1999, metadata: {} } as never)).toEqual({
      id: 'conv_1',
      object: 'conversation',
      created_at: 1,
      metadata: {},
    });
  });
});
