import { describe, expect, test } from 'vitest';
import { makePdf } from '../../../test/support/make-pdf.ts';
import { parseCode } from './code.ts';
import { parseHtml } from './html.ts';
import { CHUNK_TOKENS, DOCUMENT_LIMITS } from './limits.ts';
import { parseMarkdown } from './markdown.ts';
import { linesOfPage, parsePdf } from './pdf.ts';
import { parsePlainText } from './plain-text.ts';
import { readDocument } from './read-document.ts';
import type { ParsedDocument } from './types.ts';

const kindsOf = ({ text, blocks }: ParsedDocument) => blocks.map(({ kind, start, end }) => [kind, text.slice(start, end)]); // prettier-ignore
const headingsOf = ({ text, blocks }: ParsedDocument) =>
  blocks.map(({ start, end, headings }) => [text.slice(start, end), headings.join(' > ')]);

describe('[DC6] Markdown', () => {
  test.each<[string, string, readonly (readonly [string, string])[]]>([
    ['lines without a break are one paragraph', 'one\ntwo', [['paragraph', 'one\ntwo']]],
    ['a heading ends a paragraph', 'one\n# Two\nthree', [['paragraph', 'one'], ['heading', '# Two'], ['paragraph', 'three']]],
    ['an indented heading, too', 'one\n  # Two', [['paragraph', 'one'], ['heading', '  # Two']]],
    ['a line of = or - makes a heading', 'One\n===\ntwo\n\nThree\n---', [['heading', 'One\n==='], ['paragraph', 'two'], ['heading', 'Three\n---']]],
    ['a fence ends a paragraph', 'one\n```\ntwo\n```\nthree', [['paragraph', 'one'], ['code', '```\ntwo\n```'], ['paragraph', 'three']]],
    ['a fence ends with a mark of its kind and length', '````\na\n```\n~~~~\n````\nb', [['code', '````\na\n```\n~~~~\n````'], ['paragraph', 'b']]],
    ['a longer mark ends it, too', '~~~\na\n~~~~~\nb', [['code', '~~~\na\n~~~~~'], ['paragraph', 'b']]],
    ['a fence without an end reaches to the end', 'one\n\n```\ntwo\n\n# three', [['paragraph', 'one'], ['code', '```\ntwo\n\n# three']]],
    ['a table has a rule below its first line', 'a | b\n--|--\n1 | 2\nend', [['table', 'a | b\n--|--\n1 | 2'], ['paragraph', 'end']]],
    ['a table may end the text', '| a |\n|---|\n| 1 |', [['table', '| a |\n|---|\n| 1 |']]],
    ['a table ends at an empty line', '| a |\n|---|\n| 1 |\n\n| 2 |', [['table', '| a |\n|---|\n| 1 |'], ['paragraph', '| 2 |']]],
    ['a bar alone makes no table', 'a | b\nc | d', [['paragraph', 'a | b\nc | d']]],
    ['a rule alone makes no table', 'x\n\n|---|\ny', [['paragraph', 'x'], ['paragraph', '|---|\ny']]],
    ['a table ends a paragraph', 'one\n| a |\n|---|\n| 1 |', [['paragraph', 'one'], ['table', '| a |\n|---|\n| 1 |']]],
    ['a line with a bar above a line of - does not', 'one\na | b\n---\nc', [['paragraph', 'one\na | b\n---\nc']]],
    ['nor a line without a bar above a rule', 'one\ntwo\n|---|\nc', [['paragraph', 'one\ntwo\n|---|\nc']]],
    ['a list ends a paragraph', 'one\n- two', [['paragraph', 'one'], ['list', '- two']]],
    ['a paragraph does not go on after an empty line', 'one\n\n- two', [['paragraph', 'one'], ['list', '- two']]],
    ['a list goes on with an item after an empty line', '- one\n\n- two', [['list', '- one\n\n- two']]],
    ['a list goes on with an indented line', '- one\n\n  more\n\nend', [['list', '- one\n\n  more'], ['paragraph', 'end']]],
    ['a list ends before any other line', '- one\n\ntwo', [['list', '- one'], ['paragraph', 'two']]],
    ['a list keeps its indented code and headings', '- one\n  # two\n  ```\n  three', [['list', '- one\n  # two\n  ```\n  three']]],
    ['a heading that is not indented ends a list', '- one\n# two', [['list', '- one'], ['heading', '# two']]],
    ['a list keeps rows of a table', '- one\n| a |\n|---|', [['list', '- one\n| a |\n|---|']]],
  ])('%s', (_, text, blocks) => {
    expect(kindsOf(parseMarkdown(text))).toEqual(blocks);
  }); // prettier-ignore

  test('a heading closes those of its level and below', () => {
    const text = '# A\n## B\n### C\n## D\nd\n# E\n#\ne';
    expect(headingsOf(parseMarkdown(text))).toEqual([
      ['# A', 'A'],
      ['## B', 'A > B'],
      ['### C', 'A > B > C'],
      ['## D', 'A > D'],
      ['d', 'A > D'],
      ['# E', 'E'],
      ['#', ''],
      ['e', ''],
    ]);
  });

  test.each([
    ['# C#', 'C#'],
    ['## a b ##  ', 'a b'],
    ['#\ta\t#', 'a'],
    ['# #', ''],
    [`# ${'t'.repeat(300)}`, 't'.repeat(256)],
  ])('%s has its title without closing marks, and not longer than a chunk may repeat', (text, title) => {
    expect(headingsOf(parseMarkdown(text))).toEqual([[text, title]]);
  });

  test.each([
    ['|-|:-:|', 'table'],
    [' --: | - ', 'table'],
    ['|-|x|', 'paragraph'],
    ['| |-|', 'paragraph'],
    ['||', 'paragraph'],
    ['-:-', 'paragraph'],
  ])('%s below a row makes it a %s', (rule, kind) => {
    expect(kindsOf(parseMarkdown(`a|b\n${rule}`))).toEqual([[kind, `a|b\n${rule}`]]);
  });
});

test('[DC6] plain text has paragraphs between empty lines', () => {
  expect(kindsOf(parsePlainText('one\ntwo\n \n\nthree\n'))).toEqual([
    ['paragraph', 'one\ntwo'],
    ['paragraph', 'three'],
  ]);
});

describe('[DC6] HTML', () => {
  test.each<[string, string, readonly (readonly [string, string])[]]>([
    ['spaces are one', '<p> a  <b> b</b>\n c </p>', [['paragraph', 'a b c']]],
    ['hidden elements have no text', '<p hidden>a</p><p aria-hidden="true">b</p><p aria-hidden="false">c</p><p title="true">d</p>', [['paragraph', 'c'], ['paragraph', 'd']]],
    ['a heading is one block', '<h2>One <i>more</i></h2><p>two</p>', [['heading', 'One more'], ['paragraph', 'two']]],
    ['a list is one block with its lists', '<ul><li>a<ul><li>b</ul><li>c</ul><p>d</p>', [['list', '- a\n- b\n- c'], ['paragraph', 'd']]],
    ['a list of terms has a line for each', '<dl><dt>a<dd>b</dl>', [['list', 'a\nb']]],
    ['a table has a line for each row', '<table><tr><th>a<th>b<tr><td>c<td>d</table>e', [['table', 'a | b |\nc | d |'], ['paragraph', 'e']]],
    ['a heading in a table is text', '<table><tr><td><h2>a</h2></table><p>b</p>', [['table', 'a |'], ['paragraph', 'b']]],
    ['code keeps its spaces and lines', '<pre>a\n\n  b</pre> c', [['code', 'a\n\n  b'], ['paragraph', 'c']]],
    ['a line break is one', 'a<br>b', [['paragraph', 'a\nb']]],
    ['a comment is no text', 'a<!-- b -->c', [['paragraph', 'ac']]],
  ])('%s', (_, html, blocks) => {
    const parsed = parseHtml(html);
    expect(kindsOf(parsed)).toEqual(blocks);
    expect(parsed.blocks[0]!.start).toBe(0);
  }); // prettier-ignore

  test('a heading closes those of its level and below', () => {
    expect(headingsOf(parseHtml('<h1>A</h1><h2>B</h2><p>b</p><h2>C</h2><p>c</p><h1>D</h1>d'))).toEqual([
      ['A', 'A'],
      ['B', 'A > B'],
      ['b', 'A > B'],
      ['C', 'A > C'],
      ['c', 'A > C'],
      ['D', 'D'],
      ['d', 'D'],
    ]);
  });

  test('a character has the line of the file', () => {
    const { text, lineAt } = parseHtml('<p>one\n\n\ntwo</p>\n\n<table>\n<tr><td>three</td></tr>\n</table>');
    expect(text.trim()).toBe('one two\n\nthree |');
    const lines = ['one', 'two', 'three', '|'].map((word) => lineAt!(text.indexOf(word)));
    expect(lines).toEqual([1, 4, 7, 7]);
  });

  test('512 levels are read, one more is not', () => {
    const nested = (depth: number): string => '<div>'.repeat(depth) + 'x';
    const inside = DOCUMENT_LIMITS.depth - 3; // the page, its body and the text are levels, too
    expect(kindsOf(parseHtml(nested(inside)))).toEqual([['paragraph', 'x']]);
    expect(() => parseHtml(nested(inside + 1))).toThrow('deeper than 512');
  });
});

describe('[DC6] source code', () => {
  const blocksOf = (text: string) => headingsOf(parseCode(text));
  test.each<[string, string, readonly (readonly [string, string])[]]>([
    ['declarations follow each other without an empty line', 'int a() {\n  x\n}\nint b() {\n  y\n}', [['int a() {\n  x\n}', 'int a()'], ['int b() {\n  y\n}', 'int b()']]],
    ['a body ends a declaration', 'def a():\n  x\ndef b():\n  y', [['def a():\n  x', 'def a()'], ['def b():\n  y', 'def b()']]],
    ['lines of one level are one block', 'a = 1\nb = 2\n\nc = 3', [['a = 1\nb = 2', 'a = 1'], ['c = 3', 'c = 3']]],
    ['a line that goes on does not begin a block', 'if (a) {\n  x\n}\n\nelse {\n  y\n}', [['if (a) {\n  x\n}\n\nelse {\n  y\n}', 'if (a)']]],
    ['an empty line inside is part of it', 'def a():\n  x\n\n  y', [['def a():\n  x\n\n  y', 'def a()']]],
    ['comments alone have no heading', '// only\n// words', [['// only\n// words', '']]],
    ['tabs count to the next multiple of four', '\tone\n    two\n  \tthree', [['one\n    two\n  \tthree', 'one']]],
    ['empty lines have no block', '\n  \n', []],
  ])('%s', (_, code, blocks) => {
    const trimmed = blocksOf(code).map(([text, path]) => [text!.trim(), path]);
    expect(trimmed).toEqual(blocks);
  }); // prettier-ignore

  test('a declaration of 220 tokens is whole, a larger one is divided inside', () => {
    // "f {", the words of the body and "}" have three tokens more than the words.
    const code = (count: number): string => `f {\n${Array.from({ length: count }, () => '  a').join('\n\n')}\n}`;
    expect(blocksOf(code(CHUNK_TOKENS.max - 3))).toHaveLength(1);
    const [first, ...parts] = blocksOf(code(CHUNK_TOKENS.max - 2));
    expect(first).toEqual(['f {', 'f']);
    expect(parts).toHaveLength(CHUNK_TOKENS.max - 2);
    expect(parts[0]).toEqual(['  a', 'f > a']);
    expect(parts.at(-1)).toEqual(['  a\n}', 'f > a']);
  });

  test('declarations are divided four levels deep, and those without a body never', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const open = names.map((name, i) => `${'  '.repeat(i)}${name} {`);
    const close = names.map((_, i) => `${'  '.repeat(i)}}`).toReversed();
    const body = Array.from({ length: 300 }, () => `${' '.repeat(12)}x`);
    const paths = blocksOf([...open, ...body, ...close].join('\n')).map(([, path]) => path);
    expect(paths).toEqual(['a', 'a > b', 'a > b > c', 'a > b > c > d', 'a > b > c > d > e']);
    expect(blocksOf('a\n'.repeat(300))).toHaveLength(1);
  });

  test('a heading inside one of the same name is not repeated', () => {
    const body = Array.from({ length: 300 }, () => '  a').join('\n');
    expect(blocksOf(`a {\n${body}\n}`).map(([, path]) => path)).toEqual(['a', 'a']);
  });
});

describe('[DC6] PDF', () => {
  const item = (str: string, y: number, more = {}) => ({ str, height: 10, hasEOL: false, transform: [1, 0, 0, 1, 0, y], ...more }); // prettier-ignore
  const text = (items: readonly object[]) => linesOfPage(items as Parameters<typeof linesOfPage>[0]).map((line) => [line.text, line.height]); // prettier-ignore

  test('items on about one height are one line', () => {
    expect(text([item('a', 100), item('b', 95), item('c', 94)])).toEqual([['abc', 10]]);
    expect(text([item('a', 100), item('b', 94.5), item('c', 99.75)])).toEqual([['a', 10], ['b', 10], ['c', 10]]); // prettier-ignore
    expect(text([item('a', 100), item(' ', 100), item('b', 100, { height: 14 })])).toEqual([['a b', 14]]);
    // An item without text says nothing about the height, an item without height is one unit high.
    expect(text([item('a', 100), item('', 50), item('b', 100)])).toEqual([['ab', 10]]);
    expect(text([item('a', 100, { height: 0 }), item('b', 99.5, { height: 0 }), item('c', 98.75, { height: 0 })])).toEqual([['ab', 0], ['c', 0]]); // prettier-ignore
    expect(text([{ height: 10, hasEOL: false, transform: [] }, item('a', 0), item('b', 0, { transform: [] })])).toEqual([['ab', 10]]); // prettier-ignore
  });

  test('the end of a line ends it, and spaces alone are none', () => {
    expect(text([item('a ', 100, { hasEOL: true }), item(' ', 100, { hasEOL: true }), item('b', 100)])).toEqual([['a', 10], ['b', 10]]); // prettier-ignore
  });

  test('lines in letters 1.15 times as large as most of the text are headings, up to 200 characters', async () => {
    const isHeading = async (text: string, size: number, usual: number): Promise<boolean> =>
      (await parsePdf(makePdf([[{ text, size }, { text: 'words '.repeat(50), size: usual }]]))).blocks[0]!.kind === 'heading'; // prettier-ignore
    expect(await isHeading('Title', 23, 20)).toBe(false);
    expect(await isHeading('Title', 24, 20)).toBe(true);
    // Narrow enough for the page.
    expect(await isHeading('i'.repeat(200), 8, 5)).toBe(true);
    expect(await isHeading('i'.repeat(201), 8, 5)).toBe(false);
  });

  test('a heading closes those of its size and below, and pages begin at their texts', async () => {
    const [big, small] = [(name: string) => ({ text: name, size: 30 }), (name: string) => ({ text: name, size: 20 })];
    const parsed = await parsePdf(makePdf([[big('A'), small('B'), 'b b b'], [small('C'), 'c c c'], [], [big('D')]]));
    expect(parsed.text).toBe('A\n\nB\n\nb b b\n\nC\n\nc c c\n\nD\n\n');
    expect(parsed.pageStarts).toEqual([0, 13, 23, 23]);
    expect(headingsOf(parsed)).toEqual([
      ['A', 'A'],
      ['B', 'A > B'],
      ['b b b', 'A > B'],
      ['C', 'A > C'],
      ['c c c', 'A > C'],
      ['D', 'D'],
    ]);
  });

  test('a damaged file is called one', async () => {
    await expect(parsePdf(makePdf([['a']]).slice(0, 100))).rejects.toThrow('the PDF is damaged (100 bytes)');
  });
});

describe('[DC4] a file', () => {
  const typeOf = async (name: string, content: string | Uint8Array, contentType?: string): Promise<string> =>
    (await readDocument({ name, content, contentType })).contentType;
  const pdf = makePdf([['words']]);

  test.each<[string, string | Uint8Array, string | undefined, string]>([
    ['a.md', 'words', undefined, 'text/markdown'],
    ['A.MD', 'words', '', 'text/markdown'],
    ['a.md', 'words', 'application/octet-stream', 'text/markdown'],
    ['a', 'words', undefined, 'text/plain'],
    ['a.unknown', 'words', undefined, 'text/plain'],
    ['a.md', 'words', 'text/plain', 'text/plain'],
    ['a', 'words', 'text/strange', 'text/plain'],
    ['a', 'words', 'Text/X-Markdown; charset=utf-8', 'text/markdown'],
    ['a.txt', '"words"', 'application/json', 'text/x-code'],
    ['a.pdf', pdf, undefined, 'application/pdf'],
    ['a', pdf, undefined, 'application/pdf'],
    ['a', pdf, 'application/pdf', 'application/pdf'],
    ['a.pdf', 'only words', undefined, 'text/plain'],
  ])('%s with the type of its name, its first bytes or the request', async (name, content, given, type) => {
    expect(await typeOf(name, content, given)).toBe(type);
  });

  test('that is none of a kind is refused with its reason', async () => {
    const none = new RegExp('no text \\(3 bytes\\)$');
    await expect(typeOf('a.txt', Uint8Array.of(32, 32, 32))).rejects.toThrow(none);
    await expect(typeOf('a.pdf', makePdf([[]]))).rejects.toThrow('a scanned PDF has pictures only');
    await expect(typeOf('a.txt', Uint8Array.of(0, 65))).rejects.toThrow('byte 0 of 2 is 0');
    await expect(typeOf('a', 'words', 'application/pdf')).rejects.toThrow('has the type application/pdf');
    await expect(typeOf('a', 'words', 'image/png')).rejects.toThrow('has the type image/png');
  });

  test('has at most so many bytes or characters, and characters of text', async () => {
    const tooLarge = DOCUMENT_LIMITS.sizeBytes + 1;
    await expect(typeOf('a', 'a'.repeat(tooLarge))).rejects.toThrow(
      `has ${tooLarge} characters; the limit is 33554432`,
    );
    await expect(typeOf('a', new Uint8Array(tooLarge))).rejects.toThrow(`has ${tooLarge} bytes; the limit is 33554432`);
    const most = 'a'.repeat(DOCUMENT_LIMITS.textChars);
    expect(await typeOf('a', most)).toBe('text/plain');
    await expect(typeOf('a', `${most}a`)).rejects.toThrow('has 8388609 characters; the limit is 8388608');
  });
});
