import { describe, expect, test } from 'vitest';
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

describe('consecutive messages of one role', () => {
  const say = (role: string, ...content: unknown[]) => ({
    role,
    content: content.map((one) => (typeof one === 'string' ? { type: 'text', text: one } : one)),
  });
  const think = (thinking: string) => ({ type: 'thinking', thinking });
  const png = (data: string) => ({ type: 'image', source: { type: 'base64', data } });
  const bytes = Uint8Array.of(104, 105);

  test('are paragraphs of one turn, and a divided answer is one text', () => {
    expect(read([say('user', 'a', 'b'), say('user', 'c')])).toEqual([{ role: 'user', content: 'a\n\nb\n\nc' }]);
    expect(read([say('system', 'a'), say('system', 'b')])).toEqual([{ role: 'system', content: 'a\n\nb' }]);
    expect(read([say('assistant', 'a', 'b'), say('assistant', 'c')])).toEqual([{ role: 'assistant', content: 'abc' }]);
    expect(read([say('user', 'a'), say('assistant', 'b'), say('user', 'c')])).toHaveLength(3);
  });

  test('keep their thoughts', () => {
    expect(read([say('assistant', think('x'), think(''), think('y'), 'a')])).toEqual([
      { role: 'assistant', content: 'a', reasoning: 'x\n\ny' },
    ]);
    expect(read([say('assistant', think('x'), 'a'), say('assistant', 'b')])).toEqual([
      { role: 'assistant', content: 'ab', reasoning: 'x' },
    ]);
    expect(read([say('assistant', think('x'), 'a'), say('assistant', think('y'), 'b')])).toEqual([
      { role: 'assistant', content: 'ab', reasoning: 'x\n\ny' },
    ]);
    expect(read([say('assistant', think('x'), { type: 'tool_use', id: '1', name: 'f', input: {} })])).toEqual([
      { role: 'assistant', content: '', reasoning: 'x', toolCalls: [{ id: '1', name: 'f', arguments: '{}' }] },
    ]);
  });

  test('keep their images where they were', () => {
    expect(read([say('user', 'ab', png('aGk='), 'c')])).toEqual([
      { role: 'user', content: 'ab\n\nc', images: [{ offset: 4, data: bytes }] },
    ]);
    expect(read([say('user', png('aGk='))])).toEqual([
      { role: 'user', content: '', images: [{ offset: 0, data: bytes }] },
    ]);
    expect(read([say('user', png('aGk='), 'ab'), say('user', 'c', png('aGk='))])).toEqual([
      {
        role: 'user',
        content: 'ab\n\nc',
        images: [
          { offset: 0, data: bytes },
          { offset: 7, data: bytes },
        ],
      },
    ]);
    expect(read([say('user', png('aGk='), 'ab'), say('user', 'c')])[0]).toMatchObject({
      content: 'ab\n\nc',
      images: [{ offset: 0 }],
    });
  });

  test('are not joined if they are results, and a result comes before an image', () => {
    const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: id });
    expect(read([say('user', result('1')), say('user', result('2'), png('aGk='))])).toEqual([
      { role: 'tool', content: '1', toolCallId: '1' },
      { role: 'tool', content: '2', toolCallId: '2' },
      { role: 'user', content: '', images: [{ offset: 0, data: bytes }] },
    ]);
  });

  test('without content are an empty turn', () => {
    expect(read([say('user')])).toEqual([{ role: 'user', content: '' }]);
  });
});

const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } };

test.each([
  ['a user who calls', { role: 'user', content: [{ type: 'tool_use', id: '1', name: 'f', input: {} }] }, "'assistant'"],
  ['an image of the assistant', { role: 'assistant', content: [image] }, "'user'"],
  ['a user who thinks', { role: 'user', content: [{ type: 'thinking', thinking: 'hm' }] }, "'assistant'"],
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
