import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../../test/support/refusal-of.ts';
import type { ChatMessage } from '../../../../runtime/lower-layers.ts';
import { inputField, readItem } from './input-items.ts';
import { writeItems } from './write-items.ts';

const read = (...items: unknown[]) => inputField(9).read(items, 'input');
const user = { role: 'user', content: 'hi' };
const say = (content: unknown, role = 'assistant') => ({ type: 'message', role, content });
const think = (...texts: string[]) => ({
  type: 'reasoning',
  id: 'rs_1',
  summary: [],
  content: texts.map((text) => ({ type: 'reasoning_text', text })),
});
const call = (id: string) => ({ type: 'function_call', id: 'fc_1', call_id: id, name: 'f', arguments: '{}' });
const result = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'r' });
const image = { type: 'input_image', detail: 'auto', image_url: 'data:image/png;base64,aGk=' };
const called = (...ids: string[]) => ids.map((id) => ({ id, name: 'f', arguments: '{}' }));
const mcp = (more: object = {}) => ({
  type: 'mcp_call',
  id: 'm1',
  server_label: 'wiki',
  name: 'f',
  arguments: '{}',
  ...more,
});
const request = (id: string) => ({
  type: 'mcp_approval_request',
  id,
  server_label: 'wiki',
  name: 'f',
  arguments: '{}',
});

test('a text is a message of the user', () => {
  expect(inputField(1).read('hi', 'input')).toEqual([user]);
});

test.each([
  ['a message without a type', [user], [user]],
  ['a message whose type is null', [{ ...user, type: null }], [user]],
  [
    'parts of text',
    [
      say([
        { type: 'input_text', text: 'a' },
        { type: 'output_text', text: 'b', annotations: [] },
        { type: 'text', text: 'c' },
      ]),
    ],
    [{ role: 'assistant', content: 'abc' }],
  ],
  [
    'an image',
    [say([{ type: 'input_text', text: 'a' }, image], 'user')],
    [{ role: 'user', content: 'a', images: [{ offset: 1, data: Uint8Array.of(104, 105) }] }],
  ],
  [
    'a result',
    [call('1'), result('1')],
    [
      { role: 'assistant', content: '', toolCalls: called('1') },
      { role: 'tool', content: 'r', toolCallId: '1' },
    ],
  ],
  ['a thought and its answer', [think('x', 'y'), say('a')], [{ role: 'assistant', content: 'a', reasoning: 'x\n\ny' }]],
  [
    'a thought, its text and its calls',
    [think('x'), say('a'), call('1'), call('2')],
    [{ role: 'assistant', content: 'a', reasoning: 'x', toolCalls: called('1', '2') }],
  ],
  [
    'a thought and its call',
    [think('x'), call('1')],
    [{ role: 'assistant', content: '', reasoning: 'x', toolCalls: called('1') }],
  ],
  ['a thought and no answer', [user, think('x')], [user]],
  ['a thought before the user', [think('x'), user], [user]],
  [
    'two answers',
    [say('a'), say('b')],
    [
      { role: 'assistant', content: 'a' },
      { role: 'assistant', content: 'b' },
    ],
  ],
  [
    'an answer after calls',
    [call('1'), say('b')],
    [
      { role: 'assistant', content: '', toolCalls: called('1') },
      { role: 'assistant', content: 'b' },
    ],
  ],
  [
    'a summary',
    [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 's' }] }, say('a')],
    [{ role: 'assistant', content: 'a', reasoning: 's' }],
  ],
  [
    'a thought of nothing',
    [{ type: 'reasoning', summary: null, encrypted_content: 'x' }, say('a')],
    [{ role: 'assistant', content: 'a', reasoning: '' }],
  ],
  ['a user after the user', [user, user], [user, user]],
  ['a list of tools', [{ type: 'mcp_list_tools', id: 'l', tools: [] }, user], [user]],
  [
    'a call of an MCP server',
    [mcp({ output: 'r' })],
    [
      { role: 'assistant', content: '', toolCalls: called('m1') },
      { role: 'tool', content: 'r', toolCallId: 'm1' },
    ],
  ],
  ['a call without an output', [mcp({ output: null, error: null })], [{ toolCalls: called('m1') }, { content: '' }]],
  ['a failed call', [mcp({ error: { code: 3 } })], [{ toolCalls: called('m1') }, { content: 'Error: {"code":3}' }]],
  [
    'an approval that was answered and has no call yet',
    [request('r1'), { type: 'mcp_approval_response', approval_request_id: 'r1', approve: false }],
    [{ role: 'assistant', content: '', toolCalls: called('r1') }],
  ],
  ['an approval that is open', [request('r1')], [{ role: 'assistant', content: '', toolCalls: called('r1') }]],
  [
    'an approval with its call',
    [
      request('r1'),
      { type: 'mcp_approval_response', approval_request_id: 'r1', approve: true },
      mcp({ approval_request_id: 'r1', output: 'r' }),
    ],
    [{ toolCalls: called('m1') }, { toolCallId: 'm1' }],
  ],
  [
    'an approval beside another call',
    [mcp({ approval_request_id: 'r2', output: 'r' }), request('r1')],
    [{ toolCalls: called('m1') }, { toolCallId: 'm1' }, { toolCalls: called('r1') }],
  ],
])('%s', (_name, items, turns) => {
  const messages = read(...items);
  expect(messages).toMatchObject(turns);
  expect(messages).toHaveLength(turns.length);
});

test('turns have no fields beyond their own', () => {
  expect(read(user, say('a'), say('b', 'developer'), think('x'), call('1'))).toEqual([
    user,
    { role: 'assistant', content: 'a' },
    { role: 'developer', content: 'b' },
    { role: 'assistant', content: '', reasoning: 'x', toolCalls: called('1') },
  ]);
  expect(read(think('x'), say('a'))).toEqual([{ role: 'assistant', content: 'a', reasoning: 'x' }]);
});

test.each([
  [3, 'input'],
  [{ length: 1 }, 'input'],
  [[], 'input'],
  [Array.from({ length: 10 }, () => user), 'input'],
  [['hi'], 'input[0]'],
  [[user, { type: 3 }], 'input[1].type'],
  [[{ type: 'computer_call' }], 'input[0].type'],
  [[{ type: 'toString' }], 'input[0].type'],
  [[{ role: 'tool', content: 'a' }], 'input[0].role'],
  [[say(3)], 'input[0].content'],
  [[say({ length: 0 })], 'input[0].content'],
  [[say(['a'])], 'input[0].content[0]'],
  [[say([{ text: 'a' }])], 'input[0].content[0].type'],
  [[say([{ type: 'input_file' }])], 'input[0].content[0].type'],
  [[say([image])], 'input[0].content'],
  [[{ ...result('1'), output: [image] }], 'input[0].output'],
  [[{ ...think(), content: 'x' }], 'input[0].content'],
  [[{ ...think(), content: { length: 0 } }], 'input[0].content'],
  [[mcp({ id: '' })], 'input[0].id'],
  [[{ type: 'mcp_approval_response', approval_request_id: 'r1' }], 'input[0].approve'],
])('%j is refused', (value, param) => {
  expect(refusalOf(() => inputField(9).read(value, 'input'))).toMatchObject({ status: 400, param });
});

test('an input has at most the given number of items, and a message 4096 parts', () => {
  expect(read(...Array.from({ length: 9 }, () => user))).toHaveLength(9);
  const part = { type: 'input_text', text: 'a' };
  const parts = Array.from({ length: 4096 }, () => part);
  expect(readItem(say(parts), 'item').content).toHaveLength(4096);
  expect(refusalOf(() => readItem(say([...parts, part]), 'item'))).toMatchObject({ param: 'item.content' });
  const thoughts = (numParts: number) =>
    readItem({ type: 'reasoning', content: parts.concat(part).slice(0, numParts) }, 'item');
  expect(thoughts(4096).reasoning).toHaveLength(4096 + 4095 * 2);
  expect(refusalOf(() => thoughts(4097))).toMatchObject({ param: 'item.content' });
});

describe('the items of a turn', () => {
  test.each<[ChatMessage, object[]]>([
    [
      { role: 'user', content: 'hi' },
      [{ id: 'msg_7', type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi' }] }],
    ],
    [{ role: 'user', content: '' }, [{ id: 'msg_7', content: [{ type: 'input_text', text: '' }] }]],
    [
      { role: 'assistant', content: 'a', reasoning: 'x', toolCalls: called('1', '2') },
      [
        { id: 'rs_7', type: 'reasoning', content: [{ type: 'reasoning_text', text: 'x' }] },
        { id: 'msg_7', type: 'message', content: [{ type: 'output_text', text: 'a' }] },
        { id: 'fc_7_0', type: 'function_call', call_id: '1', name: 'f', arguments: '{}' },
        { id: 'fc_7_1', type: 'function_call', call_id: '2' },
      ],
    ],
    [{ role: 'assistant', content: '', reasoning: 'x' }, [{ id: 'rs_7' }]],
    [{ role: 'assistant', content: '', toolCalls: called('1') }, [{ id: 'fc_7_0' }]],
    [{ role: 'assistant', content: '', reasoning: 'x', toolCalls: called('1') }, [{ id: 'rs_7' }, { id: 'fc_7_0' }]],
    [
      { role: 'tool', content: 'r', toolCallId: '1' },
      [{ id: 'fco_7', type: 'function_call_output', call_id: '1', output: 'r' }],
    ],
  ])('%j', (message, items) => {
    const written = writeItems(message, '7');
    expect(written).toMatchObject(items);
    expect(written).toHaveLength(items.length);
  });
});
