import { describe, expect, test } from 'vitest';
import { makePdf } from '../../../test/support/make-pdf.ts';
import { divideDocument } from './divide-document.ts';

const divide = (name: string, content: string | Uint8Array, contentType?: string) =>
  divideDocument({
    name,
    content: typeof content === 'string' ? new TextEncoder().encode(content) : content,
    contentType,
  });
const words = (count: number, of: string): string =>
  Array.from({ length: count }, (_, i) => `Sentence ${i} is about ${of}.`).join(' ');

describe('[DC6] Markdown', () => {
  test('keeps code blocks, tables and lists whole and under their headings', async () => {
    const text = `Title
=====

Intro.

## Setup

\`\`\`sh
# not a heading

npm install
\`\`\`

### Options

| name | value |
| ---- | ----- |
| a    | 1     |

- one

- two
  # not a heading either
`;
    const { chunks, contentType } = await divide('a.md', text);
    expect(contentType).toBe('text/markdown');
    expect(chunks.map(({ headings, startLine, endLine }) => [headings, startLine, endLine])).toEqual([
      [['Title'], 1, 4],
      [['Title', 'Setup'], 6, 12],
      [['Title', 'Setup', 'Options'], 14, 23],
    ]);
    expect(chunks[1]!.text).toContain('# not a heading\n\nnpm install\n```');
  });
});

describe('[DC6] HTML', () => {
  const page = `<!doctype html><html><head><title>T</title><style>p { x: y }</style></head>
<body><nav>Home</nav><h1>Hand&shy;book</h1>
<p>Fish &amp; chips<br>are <b>served</b>
at noon.</p><script>alert(1)</script>
<h2>Hours</h2>
<ul><li>Monday: 9</li><li>Sunday: <i>closed</i></li></ul>
<table><tr><th>place</th><th>price</th></tr><tr><td>north</td><td>2</td></tr></table>
<pre>a
  b</pre><div hidden>secret</div></body></html>`;
  test('has the text of headings, paragraphs, lists, tables and code, with lines of the file', async () => {
    const { chunks } = await divide('a.html', page);
    expect(chunks.map(({ headings }) => headings)).toEqual([['Hand\u00adbook'], ['Hand\u00adbook', 'Hours']]);
    expect(chunks[0]!.text).toBe('Hand\u00adbook\n\nFish & chips\nare served at noon.');
    expect(chunks[1]!.text).toBe('Hours\n\n- Monday: 9\n- Sunday: closed\n\nplace | price |\nnorth | 2 |\n\na\n  b');
    expect(chunks.map(({ startLine, endLine }) => [startLine, endLine])).toEqual([
      [2, 4],
      [5, 9],
    ]);
  });
  test('refuses a page that nests too deep, and reads broken ones', async () => {
    await expect(divide('a.html', '<div>'.repeat(600) + 'x')).rejects.toMatchObject({ code: 'limit_exceeded' });
    expect((await divide('a.html', '<p>one<p>two</b></table>')).chunks[0]!.text).toBe('one\n\ntwo');
  });
});

describe('[DC6] PDF', () => {
  const pages = [
    [{ text: 'Handbook', size: 20 }, 'The library opens at nine.', 'It closes at six.'],
    ['The second page goes on.', { text: 'Parking (paid)', size: 14 }, 'Parking costs two coins.'],
  ];
  test('has its text with pages, and headings by the size of letters', async () => {
    const { chunks, numPages } = await divide('a.pdf', makePdf(pages));
    expect(numPages).toBe(2);
    expect(
      chunks.map(({ headings, startPage, endPage, startLine }) => [headings, startPage, endPage, startLine]),
    ).toEqual([
      [['Handbook'], 1, 2, null],
      [['Handbook', 'Parking (paid)'], 2, 2, null],
    ]);
    expect(chunks[0]!.text).toContain('The library opens at nine.\nIt closes at six.\n\nThe second page');
  });
  test('refuses damaged files, wherever they break off, and one without text', async () => {
    const bytes = makePdf(pages);
    for (const size of [9, 100, 300]) {
      await expect(divide('a.pdf', bytes.slice(0, size)), String(size)).rejects.toMatchObject({ code: 'invalid_text' });
    }
    await expect(divide('a.pdf', makePdf([[]]))).rejects.toThrow('no text');
    const junk = Uint8Array.from({ length: 5000 }, (_, i) => (i * 7919) & 255);
    junk.set(new TextEncoder().encode('%PDF-1.7'));
    await expect(divide('a.pdf', junk)).rejects.toMatchObject({ code: 'invalid_text' });
  });
});

describe('[DC6] source code', () => {
  test('is divided between functions, and large ones between their methods', async () => {
    const method = (name: string): string => `  ${name}(value) {\n    // ${words(12, name)}\n    return value;\n  }\n`;
    const code = `import { a } from 'b';\n\n/** Adds. */\nexport function add(x, y) {\n  // ${words(10, 'adding')}\n  return x + y;\n}\n\nexport class Shop {\n${method('open')}\n${method('close')}\n${method('count')}}\n`;
    const { chunks, contentType } = await divide('shop.js', code);
    expect(contentType).toBe('text/x-code');
    for (const { text, start, end } of chunks) expect(code.slice(start, end)).toBe(text);
    const paths = chunks.map(({ headings }) => headings.join(' > '));
    expect(paths).toContain('export function add(x, y)');
    expect(paths).toContain('export class Shop > close(value)');
    expect(chunks.find(({ headings }) => headings.at(-1) === 'close(value)')!.text).toContain('return value;\n  }');
  });
  test('of Python and C', async () => {
    const python = `def first():\n    """${words(10, 'first')}"""\n    return 1\n\n\n@decorated\ndef second():\n    return "${words(8, 'second')}"\n`;
    const { chunks } = await divide('a.py', python);
    expect(chunks.map(({ headings }) => headings)).toEqual([['def first()'], ['def second()']]);
    expect(chunks[1]!.text.startsWith('@decorated')).toBe(true);
    const c = `#include <x.h>\n\nint main(void)\n{\n  /* ${words(30, 'main')} */\n  return 0;\n}\n\nstatic int other(void)\n{\n  return ${words(6, 'x')};\n}\n`;
    const parts = (await divide('a.c', c)).chunks;
    expect(parts.find(({ text }) => text.includes('return 0'))!.headings[0]).toMatch(/include|main/);
    expect(parts.some(({ headings }) => headings.includes('static int other(void)'))).toBe(true);
  });
});
