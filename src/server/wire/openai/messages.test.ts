import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import { isPrefix, messagesField } from './messages.ts';

const read = (...messages: unknown[]) => messagesField(9).read(messages, 'messages');
const user = { role: 'user', content: 'hi' };
const text = (value: string) => ({ type: 'text', text: value });
const image = (more: object = {}) => ({ type: 'image_url', image_url: { url: 'data:image/png;base64,aGk=' }, ...more });
const bytes = Uint8Array.of(104, 105);
const call = (id: string, more: object = {}) => ({
  id,
  type: 'function',
  function: { name: 'f', arguments: '{}' },
  ...more,
});
const called = (...ids: string[]) => ids.map((id) => ({ id, name: 'f', arguments: '{}' }));

test.each([
  [user, user],
  [
    { ...user, name: 'ada' },
    { ...user, name: 'ada' },
  ],
  [
    { role: 'developer', content: [text('a'), { ...text('b'), prompt_cache_breakpoint: {} }] },
    { role: 'developer', content: 'ab' },
  ],
  [
    { role: 'user', content: [] },
    { role: 'user', content: '' },
  ],
  [
    { role: 'user', content: [text('a'), image(), text('b')] },
    { role: 'user', content: 'ab', images: [{ offset: 1, data: bytes }] },
  ],
  [
    { role: 'assistant', content: null, tool_calls: [call('1')] },
    { role: 'assistant', content: '', toolCalls: called('1') },
  ],
  [
    { role: 'assistant', content: 'a', tool_calls: [call('1', { type: null, index: 0 }), call('2')], refusal: null },
    { role: 'assistant', content: 'a', toolCalls: called('1', '2') },
  ],
  [
    { role: 'assistant', content: 'a', tool_calls: [] },
    { role: 'assistant', content: 'a' },
  ],
  [
    { role: 'user', content: 'a', tool_calls: [], reasoning_content: '' },
    { role: 'user', content: 'a' },
  ],
  [
    { role: 'assistant', content: 'a', reasoning_content: 'hm' },
    { role: 'assistant', content: 'a', reasoning: 'hm' },
  ],
  [
    { role: 'tool', content: 'r', tool_call_id: '1' },
    { role: 'tool', content: 'r', toolCallId: '1' },
  ],
])('%j is read', (message, turn) => {
  expect(read(message)).toEqual([turn]);
});

test('calls of the older form get ids, which their results have', () => {
  const older = { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } };
  const result = { role: 'function', name: 'f', content: 'r' };
  expect(read(user, older, result, older, result)).toEqual([
    user,
    { role: 'assistant', content: '', toolCalls: called('function_1') },
    { role: 'tool', content: 'r', name: 'f', toolCallId: 'function_1' },
    { role: 'assistant', content: '', toolCalls: called('function_2') },
    { role: 'tool', content: 'r', name: 'f', toolCallId: 'function_2' },
  ]);
  expect(read({ role: 'assistant', content: '', tool_calls: [call('1')] }, result)).toMatchObject([
    { toolCalls: called('1') },
    { toolCallId: 'function_0' },
  ]);
});

test.each([
  ['hi', 'messages[0]'],
  [{ content: 'hi' }, 'messages[0].role'],
  [{ role: 'user' }, 'messages[0].content'],
  [{ role: 'assistant', content: null, tool_calls: [] }, 'messages[0].content'],
  [{ role: 'user', content: 3 }, 'messages[0].content'],
  [{ role: 'user', content: { length: 0 } }, 'messages[0].content'],
  [{ role: 'user', content: ['a'] }, 'messages[0].content[0]'],
  [{ role: 'user', content: [text('a'), {}] }, 'messages[0].content[1].type'],
  [{ role: 'user', content: [{ type: 'input_audio' }] }, 'messages[0].content[0].type'],
  [{ role: 'user', content: [{ type: 'text' }] }, 'messages[0].content[0].text'],
  [{ role: 'user', content: [image({ image_url: null })] }, 'messages[0].content[0].image_url'],
  [{ role: 'assistant', content: [image()] }, 'messages[0].content'],
  [{ ...user, tool_calls: [call('1')] }, 'messages[0].tool_calls'],
  [{ ...user, reasoning_content: 'hm' }, 'messages[0].reasoning_content'],
  [{ ...user, tool_call_id: '1' }, 'messages[0].tool_call_id'],
  [{ role: 'tool', content: 'r' }, 'messages[0].tool_call_id'],
  [{ role: 'function', content: 'r' }, 'messages[0].name'],
  [{ role: 'assistant', content: '', tool_calls: [call('')] }, 'messages[0].tool_calls[0].id'],
  [
    { role: 'assistant', content: '', tool_calls: [call('1', { function: {} })] },
    'messages[0].tool_calls[0].function.name',
  ],
  [{ role: 'assistant', content: '', audio: { id: 'a' } }, 'messages[0].audio'],
])('%j is refused', (message, param) => {
  expect(refusalOf(() => read(message))).toMatchObject({ status: 400, param });
});

test('a part without a type is told from one of another type', () => {
  const refused = (part: object) => refusalOf(() => read({ role: 'user', content: [part] }))!.message;
  expect(refused({})).toContain('a content part without a type is not supported');
  expect(refused({ type: 'file' })).toContain('a content part "file" is not supported');
});

test('a message has at most 4096 parts', () => {
  const parts = Array.from({ length: 4096 }, () => text('a'));
  expect(read({ role: 'user', content: parts })[0]!.content).toHaveLength(4096);
  expect(refusalOf(() => read({ role: 'user', content: [...parts, text('a')] }))).toMatchObject({
    param: 'messages[0].content',
  });
});

describe('a mark of a message to continue', () => {
  test.each([
    [{ prefix: true }, true],
    [{ prefix: false }, false],
    [{ prefix: 'true' }, false],
    [{}, false],
    ['a', false],
    [undefined, false],
  ])('%j: %j', (message, isContinued) => {
    expect(isPrefix(message)).toBe(isContinued);
  });
});
