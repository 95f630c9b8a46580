// A fast and long answer, with many conversations in the list: the page keeps drawing.
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { campaign } from '../support/campaign.ts';
import {
  canRun,
  type DashboardServer,
  openPage,
  scrollFrameMs,
  sharedDashboardServer,
  threadTimeMs,
} from './support/index.ts';

const TIMEOUT_MS = 600_000;
const NUM_CONVERSATIONS = 500;
/** Drawn in each measurement: one or two seconds. */
const NUM_TOKENS = campaign({ short: 100, long: 400 });

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('open');
});

/** As if the server had these conversations; it stores no other, so that the list stays as it is. */
async function listConversations(page: Page): Promise<void> {
  const summaries = Array.from({ length: NUM_CONVERSATIONS }, (_, index) => {
    return {
      id: `c${index}`,
      title: `Conversation ${index}`,
      is_pinned: false,
      updated: 1_700_000_000 - index,
      version: 1,
    };
  });
  await page.route('**/v1/chats*', (route) => {
    const words = new URL(route.request().url()).searchParams.get('q') ?? '';
    return route.fulfill({ json: { data: summaries.filter(({ title }) => title.includes(words)) } });
  });
  await page.route('**/v1/chats/*', (route) => route.fulfill({ json: { ...summaries[0], id: 'stored' } }));
}

/** Each answer begins with this many characters at once, followed by 100 tokens/s without end. */
async function streamAfter(page: Page, startChars: readonly number[]): Promise<void> {
  await page.addInitScript((lengths) => {
    let numRequests = 0;
    const counts = Object.assign(globalThis, { numTokens: 0 });
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
            counts.numTokens++;
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
  await listConversations(page);
  await page.reload();
}

/** Processor time of the page for each token of the answer. */
async function timePerToken(page: Page): Promise<number> {
  const read = (): Promise<number> => page.evaluate(() => (globalThis as unknown as { numTokens: number }).numTokens);
  const first = await read();
  const timeMs = await threadTimeMs(page, () => expect.poll(read).toBeGreaterThan(first + NUM_TOKENS));
  return timeMs / ((await read()) - first);
}

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
    await ask(page);
    await expect.poll(() => charsOf(page)).toBeGreaterThan(100);
    const short = await timePerToken(page);
    await stop(page);
    await page.getByRole('button', { name: 'New conversation' }).first().click();
    await ask(page);
    await expect.poll(() => charsOf(page)).toBeGreaterThan(170_000);
    const long = await timePerToken(page);
    console.log(`ms of processor per token: ${short.toFixed(1)} short answer, ${long.toFixed(1)} long answer`);
    expect(long / short).toBeLessThan(2);
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
      // Some paragraphs more.
      while (allBlocks().length < last + 3) await new Promise(requestAnimationFrame);
      return [...blocks].filter((block) => allBlocks().indexOf(block) < last - 2).length;
    });
    expect(changed).toBe(0);
  });
});

test.skipIf(!canRun)('a list of 500 conversations scrolls smoothly, and finds one by its title', async () => {
  await using opened = await openPage(server.url);
  const { page } = opened;
  await listConversations(page);
  await page.reload();
  // With the one that is not stored yet.
  await expect.poll(() => page.locator('.chat-side .conversation').count()).toBe(NUM_CONVERSATIONS + 1);
  const frameMs = await scrollFrameMs(page, '.chat-side', 100);
  console.log(`${NUM_CONVERSATIONS} conversations: ${frameMs.toFixed(1)} ms of processor per frame while scrolling`);
  expect(frameMs).toBeLessThanOrEqual(20);
  await page.getByRole('searchbox', { name: 'Search conversations' }).fill('Conversation 417');
  await expect.poll(() => page.locator('.chat-side .conversation').count()).toBe(1);
});
