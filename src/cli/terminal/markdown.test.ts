import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMarkdownPainter } from './markdown.ts';

const paint = (...pieces: string[]): string => {
  const painter = createMarkdownPainter();
  return pieces.map((piece) => painter.push(piece)).join('') + painter.end();
};
const show = (text: string): string =>
  text
    .replaceAll('\x1b[1m', '<b>')
    .replaceAll('\x1b[22m', '</>')
    .replaceAll('\x1b[36m', '<c>')
    .replaceAll('\x1b[39m', '</c>')
    .replaceAll('\x1b[2m', '<d>');

test.each([
  ['plain text, 2 * 3', 'plain text, 2 * 3'],
  ['a **strong** word', 'a <b>strong</> word'],
  ['call `f(x)` now', 'call <c>f(x)</c> now'],
  ['# Title\ntext', '<b># Title</>\ntext'],
  ['```js\nlet a = "**";\n```\nend', '<d>```js\nlet a = "**";\n```</>\nend'],
  ['**open', '<b>open</>'],
  ['`a ** b`', '<c>a ** b</c>'],
  ['#no heading', '#no heading'],
  ['a # b', 'a # b'],
  ['  ## indented\n', '  <b>## indented</>\n'],
  ['**a\nb**', '<b>a</>\nb<b></>'],
  ['a `b\nc', 'a <c>b</c>\nc'],
  ['## **Title**', '<b>## **Title**</>'],
  ['``a`b``', '``a<c>b``</c>'],
  ['a ***b*** c', 'a ***b*** c'],
  ['```\n# a\n`b`\n', '<d>```\n# a\n`b`\n</>'],
  ['a ``` b', 'a ``` b'],
])('paints %j', (text, expected) => {
  expect(show(paint(text))).toBe(expected);
  expect(paint(...text)).toBe(paint(text));
});

test('gives the same for any pieces, and adds no visible text', () => {
  const letters = fc.constantFrom('a', '*', '`', '#', '\n', ' ');
  fc.assert(
    fc.property(fc.array(fc.string({ unit: letters, maxLength: 6 }), { maxLength: 8 }), (pieces) => {
      expect(paint(...pieces)).toBe(paint(pieces.join('')));
      // eslint-disable-next-line no-control-regex
      const visible = paint(...pieces).replaceAll(/\x1b\[\d+m/g, '');
      expect(visible.replaceAll(/[*`]/g, '')).toBe(pieces.join('').replaceAll(/[*`]/g, ''));
    }),
  );
});
