import { expect, test } from 'vitest';
import { resolveServerLimits } from '../../limits.ts';
import { joinTurns, messageField } from './messages.ts';
import { readMessagesRequest } from './messages-request.ts';

const read = (messages: unknown[]) =>
  joinTurns(messages.flatMap((message, index) => messageField.read(message, `messages[${index}]`)));

test('calls and results become separate turns', () => {
  const turns = read([
    { role: 'user', content: 'add 1 and 2, then 3 and 4' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'I add.' },
        { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 1, b: 2 }, caller: { type: 'direct' } },
        { type: 'tool_use', id: 'toolu_2', name: 'add', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_2', content: [{ type: 'text', text: 'no' }], is_error: true },
        { type: 'tool_result', tool_use_id: 'toolu_1', content: '3' },
        { type: 'tool_result', tool_use_id: 'toolu_3' },
        { type: 'text', text: 'go on' },
      ],
    },
  ]);
  expect(turns).toEqual([
    { role: 'user', content: 'add 1 and 2, then 3 and 4' },
    {
      role: 'assistant',
      content: 'I add.',
      toolCalls: [
        { id: 'toolu_1', name: 'add', arguments: '{"a":1,"b":2}' },
        { id: 'toolu_2', name: 'add', arguments: '{}' },
      ],
    },
    { role: 'tool', content: 'no', toolCallId: 'toolu_2' },
    { role: 'tool', content: '3', toolCallId: 'toolu_1' },
    { role: 'tool', content: '', toolCallId: 'toolu_3' },
    { role: 'user', content: 'go on' },
  ]);
});

test('a turn with calls is not joined with the next', () => {
  const use = { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'f', input: {} }] };
  expect(read([use, { role: 'assistant', content: 'x' }])).toHaveLength(2);
});

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } };

test.each([
  ['a user who calls', { role: 'user', content: [{ type: 'tool_use', id: '1', name: 'f', input: {} }] }, "'assistant'"],
  ['an assistant with results', { role: 'assistant', content: [{ type: 'tool_result', tool_use_id: '1' }] }, "'user'"],
  [
    'text before a result',
    {
      role: 'user',
      content: [
        { type: 'text', text: 'x' },
        { type: 'tool_result', tool_use_id: '1' },
      ],
    },
    "'messages[0].content[1]' must be before the text",
  ],
  [
    'an input that is no object',
    { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'f', input: 3 }] },
    'input',
  ],
  [
    'a result with an image',
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: [image] }] },
    '"image"',
  ],
  ['a block that is no object', { role: 'user', content: ['x'] }, "'messages[0].content[0]' must be an object"],
  ['another role', { role: 'tool', content: 'x' }, 'one of user, assistant, system'],
])('%s is refused', (_name, message, words) => {
  expect(() => read([message])).toThrow(words);
});

test('metadata.user_id is the user of the memory and of corrections', () => {
  const body = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] };
  const userOf = (more: object) => readMessagesRequest({ ...body, ...more }, resolveServerLimits({})).generation.options.user; // prettier-ignore
  expect(userOf({ metadata: { user_id: 'ada' } })).toBe('ada');
  expect([userOf({}), userOf({ metadata: {} }), userOf({ metadata: { user_id: '' } })]).toEqual(
    Array(3).fill(undefined),
  );
});
