// Formatted answers in real Chromium: code, formulas and tables.
import { beforeAll, describe, expect, test } from 'vitest';
import { answerWith, canRun, type DashboardServer, findViolations, openPage, sharedDashboardServer } from './support/index.ts'; // prettier-ignore

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('bare');
});

const ANSWER = [
  'The energy is $E = mc^2$ and costs $5 or 10 $; a thin space: \\(a\\,b\\).',
  '$$\\int_0^1 x^2\\,dx = \\frac{1}{3}$$',
  '| name | left | centre | right |\n|---|:--|:-:|--:|\n| extraordinarily | internationalization | `straightforward_implementation` | 12.50 |',
  '```js\n// a comment\nconst answer = 42;\n```',
  '```mermaid\ngraph TD; A-->B;\n```',
  'Broken: $\\frac{1$ and hostile: $\\href{javascript:alert(1)}{x}$ $\\includegraphics{https://example.com/a.png}$',
].join('\n\n');

describe.skipIf(!canRun)('an answer', () => {
  test.each([
    ['desktop', { viewport: { width: 1280, height: 900 } }],
    ['phone', { viewport: { width: 390, height: 840 }, colorScheme: 'dark', hasTouch: true, isMobile: true }],
  ] as const)('shows coloured code, formulas and aligned tables: %s', async (_name, screen) => {
    await using opened = await openPage(server.url, { ...screen, permissions: ['clipboard-read', 'clipboard-write'] });
    const { page } = opened;
    await answerWith(page, ANSWER);
    await page.getByRole('textbox', { name: 'Message' }).fill('Explain.');
    await page.keyboard.press('Enter');
    const answer = page.getByRole('article', { name: 'Answer' });
    await answer.locator('.hljs-keyword').getByText('const').waitFor();
    await answer.locator('math').nth(4).waitFor();
    expect(await answer.locator('math').count()).toBe(5); // with the two hostile ones, whose commands are shown as text
    expect(await answer.locator('mfrac').count()).toBe(1);
    // Amounts of money are no formulas, and what cannot be typeset stays as it is written.
    expect(await answer.innerText()).toContain('costs $5 or 10 $');
    expect(await answer.innerText()).toContain('$\\frac{1$');
    expect(await answer.locator('math [href], math a, math img, annotation').count()).toBe(0);
    const alignments = await answer.locator('tbody td').evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell).textAlign)); // prettier-ignore
    expect(alignments).toEqual(['start', 'left', 'center', 'right']);
    // A word of a table is not split.
    const heights = await answer.locator('tbody td').evaluateAll((cells) => cells.map((cell) => cell.clientHeight));
    expect(Math.max(...heights)).toBeLessThan(60);
    // Mermaid is shown as code.
    expect(await answer.locator('pre[data-language="mermaid"]').innerText()).toContain('graph TD; A-->B;');
    await answer.getByRole('button', { name: 'Copy code' }).first().click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe('// a comment\nconst answer = 42;');
    await answer.getByRole('button', { name: 'Copy code' }).last().click();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toContain('graph TD');
    expect(await findViolations(page)).toEqual([]);
  });

  test.each([
    ['desktop', { viewport: { width: 1280, height: 600 } }],
    ['phone', { viewport: { width: 390, height: 700 }, hasTouch: true, isMobile: true }],
  ] as const)('follows its question closely, and its details open in view: %s', async (_name, screen) => {
    await using opened = await openPage(server.url, screen);
    const { page } = opened;
    await answerWith(page, Array.from({ length: 40 }, (_, i) => `Line ${i}.`).join('\n\n'));
    await page.getByRole('textbox', { name: 'Message' }).fill('Many lines.');
    await page.keyboard.press('Enter');
    await page.getByText('Line 39.').waitFor();
    const bottom = page.locator('.answer-details dd').last();
    await page.locator('.answer-details summary').click();
    const thread = (await page.getByRole('log').boundingBox())!;
    await expect.poll(async () => (await bottom.boundingBox())!.y).toBeLessThan(thread.y + thread.height);
    const actions = (await page.getByRole('article', { name: 'You' }).locator('.message-actions').boundingBox())!;
    const bubble = (await page.locator('.bubble').boundingBox())!;
    const answerTop = (await page.getByRole('article', { name: 'Answer' }).boundingBox())!.y;
    const hasButtons = await page.evaluate(() => matchMedia('(hover: none)').matches);
    expect(answerTop - (hasButtons ? actions.y + actions.height : bubble.y + bubble.height)).toBeLessThanOrEqual(24);
  });

  test('loads the parts for code and formulas only when an answer needs them', async () => {
    await using opened = await openPage(server.url);
    const { page, requests } = opened;
    const parts = (): string[] => requests.filter((url) => /highlight|typeset/.test(url));
    await answerWith(page, 'Plain words.');
    await page.getByRole('textbox', { name: 'Message' }).fill('Hello.');
    await page.keyboard.press('Enter');
    await page.getByText('Plain words.').waitFor();
    expect(parts()).toEqual([]);
  });

  test('is the same whether it comes in pieces or at once', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    // A formula over a blank line and a link reference change blocks that were drawn before.
    const text = `[first] and *some* words.\n\n$$\na\n\n+ b\n\n+ c\n\n= d\n$$\n\n${ANSWER}\n\n- one\n\n  more\n- two\n\nSetext\n===\n\n[first]: https://example.com/first\n`;
    await page.addInitScript(
      ([content, separator]) => {
        const send = fetch.bind(globalThis);
        let numRequests = 0;
        globalThis.fetch = async (input, init) => {
          if (!String(input).includes('/v1/chat/completions')) return send(input, init);
          const pieces = numRequests++ === 0 ? content!.match(/[\s\S]{1,7}/g)! : [content!];
          const encoder = new TextEncoder();
          const body = new ReadableStream({
            async start(controller) {
              const push = (delta: object, reason: string | null): void =>
                controller.enqueue(encoder.encode(`data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}${separator}`)); // prettier-ignore
              for (const piece of pieces) {
                push({ content: piece }, null);
                await new Promise((resolve) => setTimeout(resolve, 15));
              }
              push({}, 'stop');
              controller.enqueue(encoder.encode(`data: [DONE]${separator}`));
              controller.close();
            },
          });
          return new Response(body, { headers: { 'content-type': 'text/event-stream', 'x-request-id': 'r' } });
        };
      },
      [text, '\n\n'],
    );
    await page.reload();
    const answers = page.getByRole('article', { name: 'Answer' });
    for (const index of [0, 1]) {
      await page.getByRole('textbox', { name: 'Message' }).fill('Explain.');
      await page.keyboard.press('Enter');
      await answers.nth(index).locator('.answer-details').waitFor();
      await answers.nth(index).locator('math').nth(5).waitFor();
      await answers.nth(index).locator('.hljs-keyword').waitFor();
    }
    const [pieces, whole] = await answers.locator('.markdown').evaluateAll((all) => all.map((one) => one.innerHTML));
    expect(pieces).toBe(whole);
    expect(whole).toContain('href="https://example.com/first"');
  });

  test('of many blocks loads the parts for code and formulas once', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await answerWith(page, '```js\nconst a = 1;\n```\n\nA formula: $x^2$.\n\n'.repeat(200));
    // Each import searches the whole page for a nonce, which took seconds in a long answer.
    await page.evaluate(() => {
      const counts = { searches: 0 };
      const search = document.querySelector.bind(document) as (selector: string) => Element | null;
      document.querySelector = (selector: string) => {
        counts.searches++;
        return search(selector);
      };
      Object.assign(globalThis, { counts });
    });
    await page.getByRole('textbox', { name: 'Message' }).fill('Many blocks.');
    await page.keyboard.press('Enter');
    await page.locator('math').nth(199).waitFor({ state: 'attached' });
    await page.locator('.hljs-keyword').nth(199).waitFor({ state: 'attached' });
    const numSearches = await page.evaluate(() => (globalThis as unknown as { counts: { searches: number } }).counts.searches); // prettier-ignore
    expect(numSearches).toBeGreaterThan(0);
    expect(numSearches).toBeLessThan(50);
  });

  test('offers the way to its end after scrolling up', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await answerWith(page, Array.from({ length: 200 }, (_, i) => `Line ${i}.`).join('\n\n'));
    await page.getByRole('textbox', { name: 'Message' }).fill('Many lines.');
    await page.keyboard.press('Enter');
    await page.getByText('Line 199.').waitFor();
    const thread = page.getByRole('log');
    const toEnd = page.getByRole('button', { name: 'Go to the end' });
    expect(await toEnd.count()).toBe(0);
    await thread.evaluate((element) => (element.scrollTop = 0));
    await toEnd.click();
    await toEnd.waitFor({ state: 'detached' });
    expect(await thread.evaluate(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)).toBeLessThan(2); // prettier-ignore
  });
});
