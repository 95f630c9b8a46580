// A fast and long answer, with many conversations in the list: the page keeps drawing.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canRun, type DashboardServer, openPage, startDashboardServer } from './support/index.ts';

const TIMEOUT_MS = 600_000;
const NUM_CONVERSATIONS = 500;

let server: DashboardServer;
beforeAll(async () => {
  if (!canRun) return;
  server = await startDashboardServer();
  for (let index = 0; index < NUM_CONVERSATIONS; index++) {
    const body = { title: `Conversation ${index}`, version: 0, content: { messages: [] } };
    await server.ask(`/v1/chats/c${index}`, { method: 'POST', body });
  }
}, TIMEOUT_MS);
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

/** Each answer begins with this many characters at once, followed by 100 tokens/s without end. */
async function streamAfter(page: Page, startChars: readonly number[]): Promise<void> {
  await page.addInitScript((lengths) => {
    let numRequests = 0;
    const send = fetch.bind(globalThis);
    const paragraph = (index: number): string =>
      `Paragraph ${index} has *some* words, \`code\` and a [link](https://example.com/${index}). ${'More words follow. '.repeat(15)}\n\n` +
      (index % 5 === 0 ? `- one\n- two\n\n\`\`\`js\nconst index = ${index};\n\`\`\`\n\n` : '');
    globalThis.fetch = async (input, init) => {
      if (!String(input).includes('/v1/chat/completions')) return send(input, init);
      let index = 0;
      let text = '';
      const numChars = lengths[numRequests++]!;
      while (text.length < numChars) text += paragraph(index++);
      const encoder = new TextEncoder();
      const body = new ReadableStream({
        start(controller) {
          const push = (content: string): void =>
            controller.enqueue(encoder.encode(`data: ${JSON.stringify({ model: 'm', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`)); // prettier-ignore
          push(text);
          let tokens = '';
          const timer = setInterval(() => {
            if (tokens.length < 4) tokens += paragraph(index++);
            push(tokens.slice(0, 4));
            tokens = tokens.slice(4);
          }, 10);
          init?.signal?.addEventListener('abort', () => {
            clearInterval(timer);
            controller.error(new DOMException('aborted', 'AbortError'));
          });
        },
      });
      return new Response(body, { headers: { 'content-type': 'text/event-stream', 'x-request-id': 'r' } });
    };
  }, startChars);
  await page.reload();
}

/** Frames per second over this time. */
const framesPerSecond = (page: Page, durationMs: number): Promise<number> =>
  page.evaluate(
    (ms) =>
      new Promise<number>((resolve) => {
        let numFrames = 0;
        let startMs = 0;
        const count = (nowMs: number): void => {
          if (startMs === 0) startMs = nowMs;
          else numFrames++;
          if (nowMs - startMs < ms) requestAnimationFrame(count);
          else resolve((numFrames * 1000) / (nowMs - startMs));
        };
        requestAnimationFrame(count);
      }),
    durationMs,
  );

const ask = async (page: Page): Promise<void> => {
  await page.getByRole('textbox', { name: 'Message' }).fill('Write a book.');
  await page.keyboard.press('Enter');
};
const stop = async (page: Page): Promise<void> => {
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('Stopped.').last().waitFor();
};
const charsOf = async (page: Page): Promise<number> =>
  ((await page.getByRole('article', { name: 'Answer' }).last().textContent()) ?? '').length;

describe.skipIf(!canRun)('an answer with 100 tokens/s', () => {
  test('of 200,000 characters is formatted and drawn as smoothly as a short one', { timeout: TIMEOUT_MS }, async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await streamAfter(page, [0, 200_000]);
    await page.getByRole('button', { name: 'Conversation 0', exact: true }).waitFor();
    const idle = await framesPerSecond(page, 3000);
    await ask(page);
    await expect.poll(() => charsOf(page)).toBeGreaterThan(100);
    const short = await framesPerSecond(page, 5000);
    await stop(page);
    await page.getByRole('button', { name: 'New conversation' }).first().click();
    await ask(page);
    await expect.poll(() => charsOf(page)).toBeGreaterThan(170_000);
    const long = await framesPerSecond(page, 5000);
    console.log(`frames/s: ${idle.toFixed(1)} idle, ${short.toFixed(1)} short answer, ${long.toFixed(1)} long answer`);
    // Other tests run at the same time, so that the figures alone say nothing.
    expect(long / short).toBeGreaterThan(0.5);
    // The whole answer is formatted, and its end is in view.
    expect(await page.getByRole('button', { name: /^Show all/ }).count()).toBe(0);
    const { bottom, count } = await page.locator('.message.assistant .markdown').evaluate((element) => ({
      bottom: element.lastElementChild!.getBoundingClientRect().bottom,
      count: element.querySelectorAll(':scope > div > div').length,
    }));
    expect(count).toBeGreaterThan(400);
    const thread = (await page.getByRole('log').boundingBox())!;
    expect(bottom).toBeLessThanOrEqual(thread.y + thread.height);
    await stop(page);
  });

  test('changes only the end of a long answer', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await streamAfter(page, [100_000]);
    await ask(page);
    const text = page.locator('.message.assistant .markdown');
    await expect.poll(() => charsOf(page)).toBeGreaterThan(85_000);
    // Code is coloured after the text is drawn.
    await expect.poll(() => text.locator('pre:not([data-highlighted])').count()).toBeLessThan(2);
    const changed = await text.evaluate(async (host) => {
      const blocks = new Set<Element>();
      const allBlocks = (): Element[] => [...host.querySelectorAll(':scope > div > div')];
      const last = allBlocks().length;
      const observer = new MutationObserver((records) => {
        for (const { target } of records) {
          const block = (target as Element).closest('.markdown > div > div');
          if (block !== null) blocks.add(block);
        }
      });
      observer.observe(host, { subtree: true, childList: true, characterData: true });
      await new Promise((resolve) => setTimeout(resolve, 3000));
      return [...blocks].filter((block) => allBlocks().indexOf(block) < last - 2).length;
    });
    expect(changed).toBe(0);
  });
});
