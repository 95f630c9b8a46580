import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { campaign } from '../support/campaign.ts';
import {
  answerEndlessly,
  canRun,
  type DashboardServer,
  findViolations,
  openPage,
  startDashboardServer,
} from './support/index.ts';

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await startDashboardServer({ hasEndless: true });
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

const send = async (page: Page, text: string): Promise<void> => {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
};
const answers = (page: Page) => page.getByRole('article', { name: 'Answer' });
/** Waits until the last answer is complete and can be rated. */
const waitForAnswer = (page: Page) => page.getByRole('button', { name: 'Good answer' }).last().waitFor();

/** Sets the token limit and the seed of the conversation. */
async function limitTokens(page: Page, maxTokens: number): Promise<void> {
  await page.getByRole('button', { name: 'Generation settings' }).click();
  await page.getByLabel('Max tokens').fill(String(maxTokens));
  await page.getByLabel('Seed').fill('7');
  await page.getByRole('button', { name: 'Apply' }).click();
}

describe.skipIf(!canRun)('chat', () => {
  test('streams an answer and then shows its details', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await page.evaluate(() => {
      const lengths: number[] = [];
      Object.assign(globalThis, { lengths });
      new MutationObserver(() => {
        const { length } = document.querySelector('.message.assistant .markdown')?.textContent ?? '';
        if (length > 0 && lengths.at(-1) !== length) lengths.push(length);
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    const lengths = () => page.evaluate(() => (globalThis as unknown as { lengths: number[] }).lengths);
    const end = await answerEndlessly(page);
    await limitTokens(page, 20);
    await send(page, 'Once upon a time there was a dragon');
    await expect.poll(async () => (await lengths()).length).toBeGreaterThan(2);
    await page.getByRole('button', { name: 'Stop' }).click();
    const observed = await lengths();
    expect(observed).toEqual([...observed].sort((a, b) => a - b));
    await end();
    await page.getByRole('button', { name: 'Regenerate answer' }).click();
    await waitForAnswer(page);
    await page.locator('.answer-details summary').click();
    const details = await page.locator('.answer-details').innerText();
    expect(details).toMatch(/Model\s+stories15M-q8_0/);
    expect(details).toMatch(/Answer\s+\d+ tokens/);
    expect(details).toMatch(/Speed\s+[\d.,]+ tokens\/s/);
    expect(details).toMatch(/Request\s+[0-9a-f-]{36}/);
  });

  test('takes earlier messages of the prompt from the prefix cache', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await limitTokens(page, 40);
    await send(page, 'Tell me about the sea, and the boats, and the old man who lived beside it all his long life.');
    await waitForAnswer(page);
    await send(page, 'And then?');
    await page.locator('.answer-details').nth(1).waitFor();
    await page.locator('.answer-details summary').nth(1).click();
    const cached = /Prompt\s+\d+ tokens, (\d+) cached/.exec(await page.locator('.answer-details').nth(1).innerText());
    expect(Number(cached![1])).toBeGreaterThan(16);
  });

  test('stops an answer on the page and on the server', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await page.getByRole('button', { name: 'Generation settings' }).click();
    await page.getByLabel('System prompt').fill('You tell stories.');
    await page.getByRole('button', { name: 'Apply' }).click();
    await answerEndlessly(page);
    await send(page, 'Once upon a time');
    await page.locator('.message.assistant .markdown').waitFor();
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('Stopped.').waitFor();
    await expect
      .poll(async () => ((await (await server.ask('/slots')).json()) as { num_requests: number }).num_requests)
      .toBe(0);
    const metrics = await (await server.ask('/metrics')).text();
    expect(metrics).toContain('ruvllm_answers_total{model="endless",reason="unfinished"}');
    expect(metrics).not.toContain('ruvllm_answers_total{model="endless",reason="length"}');
    const text = await answers(page).innerText();
    await send(page, 'Go on');
    await page.locator('.message.assistant').nth(1).waitFor();
    expect(await answers(page).first().innerText()).toBe(text);
    await page.getByRole('button', { name: 'Stop' }).click();
  });

  test('stores a rating and a correction under the request id', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await limitTokens(page, 12);
    await send(page, 'Say something');
    await waitForAnswer(page);
    await page.locator('.answer-details summary').click();
    const requestId = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(await page.locator('.answer-details').innerText())![0];
    const storedFeedback = async (): Promise<unknown> => {
      const response = await server.ask('/admin/memory/audit/show', { method: 'POST', body: { requestId } });
      return ((await response.json()) as { judged?: unknown }).judged;
    };
    await expect.poll(storedFeedback).toMatchObject({ verdict: 'unknown', feedback: [] });
    for (const [name, quality] of [
      ['Good answer', 1],
      ['Bad answer', 0],
    ] as const) {
      await page.getByRole('button', { name }).click();
      await page.locator(`button[aria-label="${name}"][aria-pressed="true"]`).waitFor();
      expect(await storedFeedback()).toMatchObject({ quality, correction: null });
    }
    await page.getByRole('button', { name: 'Correct this answer' }).click();
    await page.getByRole('textbox', { name: 'Corrected answer' }).fill('Something <b>better</b>');
    await page.getByRole('button', { name: 'Send correction' }).click();
    await page.locator('button[aria-label="Correct this answer"][aria-pressed="true"]').waitFor();
    expect(await storedFeedback()).toMatchObject({ quality: 0, correction: 'Something <b>better</b>' });
    await page.locator('.feedback-outcome', { hasText: 'Remembered: near questions of this user' }).waitFor();
    // The question is asked again beside the first answer, and the correction can be taken back.
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.getByText('2 / 2').waitFor();
    await waitForAnswer(page);
    await page.getByRole('button', { name: 'Previous version' }).click();
    await page.getByRole('button', { name: 'Forget this' }).click();
    await page.locator('.feedback-outcome', { hasText: 'Forgotten' }).waitFor();
    const receipt = await server.ask(`/v1/feedback/${requestId}`);
    expect(receipt.status).toBe(404);
  });

  test('keeps versions of a regenerated answer and of an edited message', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await limitTokens(page, 8);
    await send(page, 'One');
    await waitForAnswer(page);
    await send(page, 'Two');
    await page.locator('.answer-details').nth(1).waitFor();
    expect(await page.getByRole('article').count()).toBe(4);
    const answers = page.locator('.message.assistant .markdown');
    const before = await answers.nth(1).innerText();
    await page.getByRole('button', { name: 'Regenerate answer' }).click();
    await expect.poll(() => page.locator('.message.assistant[aria-busy="false"] .answer-details').count()).toBe(2);
    await page.getByText('2 / 2').waitFor();
    await page.getByRole('button', { name: 'Previous version' }).click();
    await page.getByText('1 / 2').waitFor();
    expect(await answers.nth(1).innerText()).toBe(before);
    await page.getByRole('article', { name: 'You' }).first().hover();
    await page.getByRole('button', { name: 'Edit message' }).first().click();
    await page.getByRole('textbox', { name: 'Edit message' }).fill('Three');
    await page.getByRole('article', { name: 'You' }).first().getByRole('button', { name: 'Send' }).click();
    await waitForAnswer(page);
    expect(await page.getByRole('article').count()).toBe(2);
    expect(await page.getByRole('article', { name: 'You' }).locator('.bubble').innerText()).toBe('Three');
    await page.getByRole('button', { name: 'Previous version' }).first().click();
    await expect.poll(() => page.getByRole('article').count()).toBe(4);
    expect(await answers.nth(1).innerText()).toBe(before);
  });

  test('keeps conversations on the server, for another device', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await limitTokens(page, 4);
    const title = `Remember ${crypto.randomUUID()}`;
    await send(page, title);
    await waitForAnswer(page);
    const stored = async (): Promise<{ title: string }[]> =>
      ((await (await server.ask('/v1/chats')).json()) as { data: { title: string }[] }).data;
    await expect.poll(async () => (await stored()).map((one) => one.title)).toContain(title);
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(title);
    await using second = await openPage(server.url);
    const other = second.page;
    await other.getByRole('searchbox', { name: 'Search conversations' }).fill(title.slice(-12));
    await other.getByRole('button', { name: title, exact: true }).click();
    expect(await other.getByRole('article', { name: 'You' }).locator('.bubble').innerText()).toBe(title);
    // Renamed and pinned there, deleted here, and brought back.
    await other.getByRole('button', { name: `Options of ${title}` }).click();
    await other.getByRole('textbox', { name: 'Title' }).fill('Renamed');
    await other.getByRole('button', { name: 'Pin', exact: true }).click();
    await other.getByRole('button', { name: 'Save', exact: true }).click();
    await expect.poll(async () => (await stored()).map((one) => one.title)).toContain('Renamed');
    await page.reload();
    await page.getByRole('button', { name: /Renamed$/ }).first().click(); // prettier-ignore
    await page.getByRole('button', { name: 'Options of Renamed' }).click();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Markdown' }).click();
    expect((await download).suggestedFilename()).toBe('Renamed.md');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await expect.poll(async () => (await stored()).map((one) => one.title)).not.toContain('Renamed');
    await page.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(async () => (await stored()).map((one) => one.title)).toContain('Renamed');
  });

  test('adds files to the memory and uses them in the conversation', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await limitTokens(page, 8);
    const buffer = Buffer.from('# Opening hours\n\nThe Zanzibar library opens at nine.\n');
    await page.getByLabel('Files to add').setInputFiles({ name: 'hours.md', mimeType: 'text/markdown', buffer });
    await page.getByText('hours.md: 1 chunk.').waitFor();
    await send(page, 'When does the Zanzibar library open?');
    await waitForAnswer(page);
    await page.locator('.answer-details summary').last().click();
    // The source opens the passage.
    await page.getByRole('link', { name: /hours\.md/ }).click();
    await page.getByText('The Zanzibar library opens at nine.').waitFor();
  });

  test('keeps model and settings for the next visit', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await page.getByRole('button', { name: 'Generation settings' }).click();
    await page.getByRole('spinbutton', { name: 'Temperature' }).fill('0.31');
    await page.getByRole('button', { name: 'Apply' }).click();
    await page.reload();
    await page.getByRole('button', { name: 'Generation settings' }).click();
    expect(await page.getByRole('spinbutton', { name: 'Temperature' }).inputValue()).toBe('0.31');
  });

  test.each(campaign({ short: ['dark'], long: ['light', 'dark'] } as const))(
    'has no serious accessibility violations: %s',
    async (colorScheme) => {
      await using opened = await openPage(server.url, { colorScheme });
      const { page } = opened;
      await page.getByText('What would you like to know?').waitFor();
      expect(await findViolations(page)).toEqual([]);
      await limitTokens(page, 8);
      await send(page, '# A heading\n- and `code`');
      await waitForAnswer(page);
      await page.locator('.answer-details summary').click();
      expect(await findViolations(page)).toEqual([]);
      await page.getByRole('button', { name: 'Generation settings' }).click();
      expect(await findViolations(page)).toEqual([]);
      await page.keyboard.press('Escape');
      await page.setViewportSize({ width: 360, height: 640 });
      expect(await findViolations(page)).toEqual([]);
      // No horizontal scrolling on a phone.
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    },
  );

  test('reaches the skip link and the content with the keyboard', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await limitTokens(page, 4);
    await page.reload();
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    const isSkip = () => page.evaluate(() => document.activeElement!.className === 'skip-link');
    // Tabs backwards from the message field: the first stop of the page is the skip link.
    for (let stops = 0; stops < 40 && !(await isSkip()); stops++) await page.keyboard.press('Shift+Tab');
    expect(await page.locator('.skip-link').boundingBox()).toMatchObject({ x: 8, y: 8 });
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement!.id)).toBe('main');
  });
});
