import { expect, test } from 'vitest';
import { readMarkdown } from './markdown.ts';

test('finds blocks with their marks, code, links and anchors', () => {
  const page = readMarkdown(
    [
      '# The `first` one',
      '## Twice!',
      '## Twice',
      'See [it](a.md#x) and `ruvllm',
      'list`, not `[this](b.md)`.',
      '```sh run',
      '[neither](c.md) `that`',
      '```',
      '<!-- [nor](d.md) -->',
    ].join('\n'),
  );
  expect([...page.anchors]).toEqual(['the-first-one', 'twice', 'twice-1']);
  expect(page.links).toEqual(['a.md#x']);
  expect(page.codes).toEqual(['first', 'ruvllm list', '[this](b.md)']);
  expect(page.blocks).toEqual([{ language: 'sh', marks: ['run'], text: '[neither](c.md) `that`', line: 6 }]);
});
