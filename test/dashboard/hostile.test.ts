// Untrusted text in real Chromium: none of it runs, loads anything or alters the page around it.
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  answerWith as answerWithText,
  canRun,
  type DashboardServer,
  openPage,
  sharedDashboardServer,
} from './support/index.ts';

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('bare');
});

const HOSTILE = [
  '<script>globalThis.pwned = 1</script>',
  '<img src="https://example.com/a.png" onerror="globalThis.pwned = 2">',
  '<svg onload="globalThis.pwned = 3"><a href="javascript:globalThis.pwned = 4">svg</a></svg>',
  '<iframe srcdoc="<script>parent.pwned = 5</script>"></iframe>',
  '<style>body { display: none }</style><link rel="stylesheet" href="https://example.com/a.css">',
  '<form action="https://example.com"><input name="key"><button>send</button></form>',
  '<details open ontoggle="globalThis.pwned = 6">x</details>',
  '<math><mtext><table><mglyph><style><img src=x onerror="globalThis.pwned = 7"></style></mglyph></table></mtext></math>',
  '[click](javascript:globalThis.pwned=8) [click](data:text/html,<script>globalThis.pwned=9</script>)',
  '[a](jaVAscript:alert(1)) [b](&#106;avascript:alert(1)) [c](\u0001javascript:alert(1)) [d](vbscript:x) [e](file:///etc/passwd)',
  '![picture](https://example.com/pixel.png) ![x](javascript:alert(1)) ![y" onerror="globalThis.pwned=10](https://example.com/y.png)',
  '<https://example.com/auto> and [title](https://example.com "x\\" onmouseover=\\"globalThis.pwned=11")',
  '```html" onclick="globalThis.pwned=12\n<b>code</b>\n```',
  '| a | b |\n|---|---|\n| <img src=x onerror=alert(1)> | `<b>` |',
  '- [x] done\n- [ ] <input autofocus onfocus=alert(1)>',
  '\u001b[31mred\u001b[0m \u202Egnp.exe\u202C \u2066isolated\u2069 \u0000nul',
].join('\n\n');

const answerWith = (page: Page, text: string): Promise<void> =>
  answerWithText(page, text, { 'x-route': '<b>who</b>', 'x-route-reason': '<i>why</i>' });

async function send(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
}

/** Returns all active elements and attributes in the thread. */
const activeContent = (page: Page): Promise<string[]> =>
  page
    .locator('.thread')
    .evaluate((thread) =>
      [...thread.querySelectorAll('.words *, .markdown *')].flatMap((element) => [
        ...(/^(?:script|img|iframe|object|embed|style|link|form|input|svg|math|video|audio|base|meta)$/i.test(
          element.tagName,
        )
          ? [element.tagName]
          : []),
        ...[...element.attributes]
          .filter(
            ({ name, value }) =>
              name.startsWith('on') || name === 'style' || /^\s*(?:javascript|data|vbscript|file):/i.test(value),
          )
          .map(({ name, value }) => `${name}=${value}`),
      ]),
    );

describe.skipIf(!canRun)('hostile text', () => {
  test('is shown as text in an answer, with links to web pages only', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await answerWith(page, HOSTILE);
    await send(page, HOSTILE);
    await page.getByRole('button', { name: 'Good answer' }).waitFor();
    expect(await activeContent(page)).toEqual([]);
    expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBe(undefined);
    const answer = page.locator('.message.assistant .markdown');
    const text = await answer.innerText();
    expect(text).toContain('<script>globalThis.pwned = 1</script>');
    expect(text).toContain('<iframe srcdoc=');
    expect(text).toContain('␛[31mred␛[0m ⟦U+202E⟧gnp.exe⟦U+202C⟧');
    expect(text).toContain('image: picture');
    expect(await page.locator('.message.user .words').innerText()).toContain('<img src="https://example.com/a.png"');
    const links = await answer.locator('a').evaluateAll((all) =>
      all.map((one) => ({
        href: one.getAttribute('href'),
        rel: one.getAttribute('rel'),
        target: one.getAttribute('target'),
      })),
    );
    expect(links.length).toBeGreaterThan(2);
    for (const { href, rel, target } of links) {
      expect(href).toMatch(/^https:\/\/example\.com(?:\/|$)/);
      expect({ rel, target }).toEqual({ rel: 'noopener noreferrer nofollow', target: '_blank' });
    }
    await page.locator('.answer-details summary').click();
    expect(await page.locator('.answer-details').innerText()).toContain('<b>who</b> (<i>why</i>)');
  });

  test('still formats Markdown while it streams', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await answerWith(
      page,
      '# Title\n\n**bold** and *soft* and [ref][1]\n\n```ts\nlet x = 1 < 2;\n```\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n\n1. one\n2. two\n\n[1]: https://example.com/ref',
    );
    await send(page, 'hi');
    await page.getByRole('button', { name: 'Good answer' }).waitFor();
    const answer = page.locator('.message.assistant .markdown');
    expect(await answer.locator('h3').innerText()).toBe('Title');
    expect(await answer.locator('strong').innerText()).toBe('bold');
    expect(await answer.locator('pre code').innerText()).toBe('let x = 1 < 2;');
    expect(await answer.locator('pre').getAttribute('data-language')).toBe('ts');
    expect(await answer.locator('td').allInnerTexts()).toEqual(['1', '2']);
    expect(await answer.locator('ol > li').allInnerTexts()).toEqual(['one', 'two']);
    expect(await answer.locator('a').getAttribute('href')).toBe('https://example.com/ref');
  });

  test('of a megabyte, as prompt and as answer, leaves the page usable', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    const long = `<b>begin</b> ${'lorem ipsum dolor '.repeat(60_000)}\n**end**`;
    expect(long.length).toBeGreaterThan(2 ** 20 - 5000);
    await answerWith(page, long);
    await send(page, long);
    await page.getByRole('button', { name: 'Good answer' }).waitFor();
    expect(await page.getByRole('button', { name: 'Show all 1.0 MiB' }).count()).toBe(2);
    // Only an excerpt is rendered until the text is expanded.
    expect(await page.evaluate(() => document.body.innerText.length)).toBeLessThan(20_000);
    await page.getByRole('button', { name: 'Show all 1.0 MiB' }).last().click();
    expect(await page.locator('.words.whole').evaluate((one) => one.textContent!.endsWith('**end**'))).toBe(true);
    await page.getByRole('textbox', { name: 'Message' }).pressSequentially('still typing');
    expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('still typing');
    expect(await activeContent(page)).toEqual([]);
  });

  test.each([
    ['brackets', '['.repeat(39_000)],
    ['quotes', '> '.repeat(5000)],
    ['lists', Array.from({ length: 200 }, (_, depth) => `${' '.repeat(depth * 2)}- x`).join('\n')],
    ['emphasis', '*a_'.repeat(13_000)],
    ['links', '[a](<b>'.repeat(5500)],
    ['entities', '&#x26;'.repeat(6000)],
  ])('that is slow to format does not block the page: %s', async (_name, text) => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await answerWith(page, text);
    await send(page, 'hi');
    await page.getByRole('button', { name: 'Good answer' }).waitFor();
    await page.getByRole('textbox', { name: 'Message' }).pressSequentially('ok');
    expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('ok');
    expect((await page.locator('.message.assistant').innerText()).length).toBeGreaterThan(20);
  });
});
