import { describe, expect, test } from 'vitest';
import { refusalOf } from '../../../../test/support/refusal-of.ts';
import { readBlocks, systemField } from './content-blocks.ts';

const text = (value: string) => ({ type: 'text', text: value });
const source = (more: object) => ({ type: 'image', source: more });

test.each([
  ['a', [{ type: 'text', text: 'a' }]],
  [[], []],
  [[{ ...text('a'), citations: [] }], [{ type: 'text', text: 'a' }]],
  [[{ ...text('a'), citations: null, cache_control: { type: 'ephemeral', ttl: '1h' } }], [{ type: 'text', text: 'a' }]],
  [
    [source({ type: 'base64', media_type: 'image/png', data: 'aGk=' })],
    [{ type: 'image', data: Uint8Array.of(104, 105) }],
  ],
  [[source({ type: 'url', url: 'data:image/png;base64,aGk=' })], [{ type: 'image', data: Uint8Array.of(104, 105) }]],
  [[{ type: 'thinking', thinking: 'hm', signature: 's' }], [{ type: 'thinking', text: 'hm' }]],
  [[{ type: 'redacted_thinking', data: 'x' }], [{ type: 'thinking', text: '' }]],
  [
    [{ type: 'tool_use', id: '1', name: 'f', input: { a: 1 } }],
    [{ type: 'tool_use', call: { id: '1', name: 'f', arguments: '{"a":1}' } }],
  ],
  [
    [{ type: 'tool_result', tool_use_id: '1', content: [text('a'), text('b')] }],
    [{ type: 'tool_result', id: '1', text: 'a\n\nb' }],
  ],
  [[{ type: 'tool_result', tool_use_id: '1' }], [{ type: 'tool_result', id: '1', text: '' }]],
])('%j is read', (value, blocks) => {
  expect(readBlocks(value, 'content')).toEqual(blocks);
});

test.each([
  [3, 'content', 'invalid_value'],
  [{ length: 1 }, 'content', 'invalid_value'],
  [[3], 'content[0]', 'invalid_value'],
  [[{ type: 3 }], 'content[0].type', 'invalid_value'],
  [[{}], 'content[0].type', 'invalid_value'],
  [[{ type: 'document' }], 'content[0].type', 'unsupported'],
  [[{ type: 'toString' }], 'content[0].type', 'unsupported'],
  [[{ ...text('a'), citations: [{}] }], 'content[0].citations', 'unsupported'],
  [[{ ...text('a'), citations: { length: 0 } }], 'content[0].citations', 'unsupported'],
  [[source({ type: 'file', file_id: 'f' })], 'content[0].source.type', 'unsupported'],
  [[source({ type: { toString: 1, valueOf: 1 } })], 'content[0].source.type', 'unsupported'],
  [[source({ type: 'url' })], 'content[0].source.url', 'missing_required_parameter'],
  [[source({ type: 'base64' })], 'content[0].source.data', 'missing_required_parameter'],
  [
    [{ type: 'tool_result', tool_use_id: '1', content: [{ type: 'thinking', thinking: 'hm' }] }],
    'content[0].content',
    'unsupported',
  ],
])('%j is refused', (value, param, code) => {
  expect(refusalOf(() => readBlocks(value, 'content'))).toMatchObject({ status: 400, param, code });
});

test('a message has at most 4096 blocks', () => {
  const blocks = Array.from({ length: 4096 }, () => text('a'));
  expect(readBlocks(blocks, 'content')).toHaveLength(4096);
  expect(refusalOf(() => readBlocks([...blocks, text('a')], 'content'))).toMatchObject({ param: 'content' });
});

describe('system', () => {
  const billing = 'x-anthropic-billing-header: cc_version=1;';

  test.each([
    ['be kind', 'be kind'],
    ['', ''],
    [[], null],
    [[text('a'), text('b')], 'a\n\nb'],
    [[text(''), text('b')], '\n\nb'],
    [billing, null],
    [`${billing}\nbe kind`, 'be kind'],
    [[text(billing), text('a'), text('b')], 'a\n\nb'],
    [[text(`${billing}\nbe kind`), text('a')], 'be kind\n\na'],
    // Only at the very start.
    [[text('a'), text(billing)], `a\n\n${billing}`],
    [`a\n${billing}`, `a\n${billing}`],
  ])('%j', (value, content) => {
    expect(systemField.read(value, 'system')).toBe(content);
  });

  test('has only text', () => {
    expect(refusalOf(() => systemField.read([text('a'), { type: 'redacted_thinking' }], 'system'))).toMatchObject({
      status: 400,
      param: 'system[1].type',
    });
  });
});
