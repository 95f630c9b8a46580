import { describe, expect, test } from 'vitest';
import { hasOpenapi, violationsOf } from '../../../../../test/support/openapi-schemas.ts';
import type { ChatMessage } from '../../../../runtime/lower-layers.ts';
import { writeInputItems } from './input-item-list.ts';

const messages: ChatMessage[] = [
  { role: 'user', content: 'how warm is it' },
  { role: 'assistant', content: 'I look', toolCalls: [{ id: 'call_1', name: 'look', arguments: '{}' }] },
  { role: 'tool', content: '20', toolCallId: 'call_1' },
  { role: 'assistant', content: '', toolCalls: [{ id: 'call_2', name: 'look', arguments: '{"a":1}' }] },
  { role: 'tool', content: '21', toolCallId: 'call_2' },
  { role: 'assistant', content: 'the answer itself' },
];
const list = (query: string): any => {
  const items = writeInputItems({ id: 'resp_1', content: { body: {}, messages } }, new URLSearchParams(query));
  if (hasOpenapi) expect(violationsOf('ResponseItemList', items)).toEqual([]);
  return items;
};

describe('[R5] the input items of a response', () => {
  test('are all items except the answer', () => {
    expect(list('order=asc')).toEqual({
      object: 'list',
      has_more: false,
      first_id: 'msg_1_in_0',
      last_id: 'fco_1_in_4',
      data: [
        {
          id: 'msg_1_in_0',
          type: 'message',
          status: 'completed',
          role: 'user',
          content: [{ type: 'input_text', text: 'how warm is it' }],
        },
        {
          id: 'msg_1_in_1',
          type: 'message',
          status: 'completed',
          role: 'assistant',
          content: [{ type: 'output_text', text: 'I look', annotations: [], logprobs: [] }],
        },
        {
          id: 'fc_1_in_1_0',
          type: 'function_call',
          status: 'completed',
          call_id: 'call_1',
          name: 'look',
          arguments: '{}',
        },
        { id: 'fco_1_in_2', type: 'function_call_output', status: 'completed', call_id: 'call_1', output: '20' },
        {
          id: 'fc_1_in_3_0',
          type: 'function_call',
          status: 'completed',
          call_id: 'call_2',
          name: 'look',
          arguments: '{"a":1}',
        },
        { id: 'fco_1_in_4', type: 'function_call_output', status: 'completed', call_id: 'call_2', output: '21' },
      ],
    });
  });

  test('leave out all turns of the answer', () => {
    const content = { body: {}, messages, numAnswerTurns: 3 };
    const { data } = writeInputItems({ id: 'resp_1', content }, new URLSearchParams('order=asc')) as {
      data: unknown[];
    };
    expect(data).toHaveLength(4);
  });

  test('are paged, last first', () => {
    const seen: string[] = [];
    for (let after = '', hasMore = true; hasMore;) {
      const page = list(`limit=4${after}`) as { data: { id: string }[]; has_more: boolean; last_id: string };
      seen.push(...page.data.map(({ id }) => id));
      [after, hasMore] = [`&after=${page.last_id}`, page.has_more];
    }
    expect(seen).toEqual(['fco_1_in_4', 'fc_1_in_3_0', 'fco_1_in_2', 'fc_1_in_1_0', 'msg_1_in_1', 'msg_1_in_0']);
    expect(list('after=msg_1_in_0')).toMatchObject({ data: [], has_more: false, first_id: '', last_id: '' });
  });

  test.each([
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=1e1', 'limit'],
    ['limit=-1', 'limit'],
    ['order=random', 'order'],
    ['after=nothing', 'after'],
    ['after=__proto__', 'after'],
  ])('%s is refused', (query, param) => {
    expect(() => list(query)).toThrow(expect.objectContaining({ data: expect.objectContaining({ option: param }) }));
  });
});
