import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { campaign } from '../support/campaign.ts';
import {
  answerEndlessly,
  canRun,
  type DashboardServer,
  drawnText,
  findViolations,
  openPage,
  sharedDashboardServer,
} from './support/index.ts';

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('open');
});

const send = async (page: Page, text: string): Promise<void> => {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
};
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
    expect(details).toMatch(/Model\s+stories260K-f32/);
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
    await using opened = await openPage(server.url, { permissions: ['clipboard-read', 'clipboard-write'] });
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
    // The copied text, not the drawn one: formatting follows in slices, and later text may change how earlier text is drawn.
    const copyFirst = async (): Promise<string> => {
      await page.getByRole('button', { name: 'Copy answer' }).first().click();
      return page.evaluate(() => navigator.clipboard.readText());
    };
    const text = await copyFirst();
    expect(text).not.toBe('');
    await send(page, 'Go on');
    await page.locator('.message.assistant').nth(1).waitFor();
    expect(await copyFirst()).toBe(text);
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
    await page.locator('.feedback-outcome', { hasText: 'Remembered: similar questions' }).waitFor();
    await page.getByText('Figures').click();
    await page.getByText('near questions of this user').waitFor();
    // The old answer and the correction stand side by side, and the question can be asked again beside them.
    const column = (name: string) => page.getByRole('region', { name, exact: true });
    expect(await column('Your correction').innerText()).toContain('Something <b>better</b>');
    const boxes = await Promise.all(['Before', 'Your correction'].map((name) => column(name).boundingBox()));
    expect(boxes[0]!.y).toBe(boxes[1]!.y);
    expect(boxes[0]!.x + boxes[0]!.width).toBeLessThanOrEqual(boxes[1]!.x);
    await page.getByRole('button', { name: 'Ask again' }).click();
    await column('Asked again').getByText('A corrected or well-rated answer was in the prompt.').waitFor();
    await expect.poll(() => column('Asked again').locator('.markdown').innerText()).not.toBe('');
    const paraphrase = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Try a paraphrase' }).click();
    expect(await page.getByLabel('Question in other words').inputValue()).toBe('I would like to know: Say something');
    await page.getByLabel('Question in other words').fill('Please say something');
    await page.getByRole('button', { name: 'Ask paraphrase' }).click();
    expect((await paraphrase).postDataJSON().messages).toEqual([{ role: 'user', content: 'Please say something' }]);
    await column('Paraphrase').getByText('Please say something').waitFor();
    // Trials are no part of the conversation.
    await expect.poll(() => column('Paraphrase').getAttribute('aria-busy')).toBe('false');
    expect(await page.getByRole('article').count()).toBe(2);
    await page.setViewportSize({ width: 390, height: 840 });
    const stacked = await Promise.all(['Before', 'Your correction'].map((name) => column(name).boundingBox()));
    expect(stacked[0]!.y + stacked[0]!.height).toBeLessThanOrEqual(stacked[1]!.y);
    expect(await findViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Forget this' }).click();
    await page.locator('.feedback-outcome', { hasText: 'Forgotten' }).waitFor();
    const receipt = await server.ask(`/v1/feedback/${requestId}`);
    expect(receipt.status).toBe(404);
  });

  test('waits until the server has learned and says what changed', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await limitTokens(page, 4);
    await send(page, 'Say something');
    await waitForAnswer(page);
    const outcome = { state: 'pending', reason: '', loss_before: null, loss_after: null, supersedes: [] };
    const learned = { state: 'learned', reason: 'it fits', loss_before: 3.2, loss_after: 2.05, supersedes: ['r'] };
    let isLearned = false;
    await page.route('**/v1/feedback', (route) => route.fulfill({ json: { outcome } }));
    await page.route('**/v1/feedback/*', (route) =>
      route.fulfill({ json: { outcome: isLearned ? learned : outcome } }),
    );
    await page.getByRole('button', { name: 'Correct this answer' }).click();
    await page.getByRole('textbox', { name: 'Corrected answer' }).fill('Better');
    await page.getByRole('button', { name: 'Send correction' }).click();
    // The dialog closes while the server learns.
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText('The server is learning from it').waitFor();
    isLearned = true;
    await page.getByText('The right answer is now 3.16 times as likely per token.').waitFor();
    await page.getByText('It replaces an earlier correction.').waitFor();
    expect(await page.getByText('3.2 → 2.05 nats per token').isVisible()).toBe(false);
    await page.getByText('Figures').click();
    await page.getByText('3.2 → 2.05 nats per token').waitFor();
  });

  test('keeps the outcome of a correction when that of an earlier rating arrives late', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await limitTokens(page, 4);
    await send(page, 'Say something');
    await waitForAnswer(page);
    const outcomeOf = (state: string) => ({
      state,
      reason: state,
      loss_before: null,
      loss_after: null,
      supersedes: [],
    });
    let answerLate = (): void => {};
    const gate = new Promise<void>((resolve) => (answerLate = resolve));
    await page.route('**/v1/feedback', (route) =>
      route.fulfill({
        json: { outcome: outcomeOf(route.request().postDataJSON().correction ? 'remembered' : 'pending') },
      }),
    );
    await page.route('**/v1/feedback/*', async (route) => {
      await gate;
      await route.fulfill({ json: { outcome: outcomeOf('refused') } });
    });
    const asked = page.waitForRequest('**/v1/feedback/*');
    await page.getByRole('button', { name: 'Bad answer' }).click();
    const late = (await asked).response();
    await page.getByRole('button', { name: 'Correct this answer' }).click();
    await page.getByRole('textbox', { name: 'Corrected answer' }).fill('Better');
    await page.getByRole('button', { name: 'Send correction' }).click();
    const remembered = page.locator('.feedback-outcome', { hasText: 'Remembered' });
    await remembered.waitFor();
    answerLate();
    await (await late)!.finished();
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    expect(await remembered.count()).toBe(1);
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
    const answer = page.locator('.message.assistant').nth(1);
    const before = await drawnText(answer);
    await page.getByRole('button', { name: 'Regenerate answer' }).click();
    await expect.poll(() => page.locator('.message.assistant[aria-busy="false"] .answer-details').count()).toBe(2);
    await page.getByText('2 / 2').waitFor();
    await page.getByRole('button', { name: 'Previous version' }).click();
    await page.getByText('1 / 2').waitFor();
    expect(await drawnText(answer)).toBe(before);
    await page.getByRole('article', { name: 'You' }).first().hover();
    await page.getByRole('button', { name: 'Edit message' }).first().click();
    await page.getByRole('textbox', { name: 'Edit message' }).fill('Three');
    await page.getByRole('article', { name: 'You' }).first().getByRole('button', { name: 'Send' }).click();
    await waitForAnswer(page);
    expect(await page.getByRole('article').count()).toBe(2);
    expect(await page.getByRole('article', { name: 'You' }).locator('.bubble').innerText()).toBe('Three');
    await page.getByRole('button', { name: 'Previous version' }).first().click();
    await expect.poll(() => page.getByRole('article').count()).toBe(4);
    expect(await drawnText(answer)).toBe(before);
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

  test('finds words inside conversations that were never opened', async () => {
    const titles = ['Alpha', 'Beta'].map((title) => `${title} ${crypto.randomUUID()}`);
    const word = crypto.randomUUID();
    for (const [index, title] of titles.entries()) {
      const message = { id: 'm', role: 'user', text: index === 0 ? `It mentions ${word}.` : 'It does not.', reasoning: '', state: 'done', failure: null, details: null, verdict: { thumbs: null, correction: null } }; // prettier-ignore
      const body = { title, version: 0, content: { title, messages: [message] } };
      const stored = await server.ask(`/v1/chats/${crypto.randomUUID()}`, { method: 'POST', body });
      expect(stored.status).toBe(200);
    }
    await using opened = await openPage(server.url);
    const { page } = opened;
    const entryOf = (title: string) => page.getByRole('button', { name: title, exact: true });
    await entryOf(titles[0]!).waitFor();
    await page.getByRole('searchbox', { name: 'Search conversations' }).fill(word.toUpperCase());
    await entryOf(titles[1]!).waitFor({ state: 'detached' });
    await entryOf(titles[0]!).click();
    await page.getByText(`It mentions ${word}.`).waitFor();
    await page.getByRole('searchbox', { name: 'Search conversations' }).fill('no such words');
    await page.getByText('No conversation has these words.').waitFor();
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
    // A source opens its passage under the answer, and from there the document.
    const sources = page.getByRole('region', { name: 'Sources' });
    await sources.getByText('hours.md, lines 1–3 › Opening hours').click();
    await sources.getByText('The Zanzibar library opens at nine.').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await sources.getByRole('link', { name: 'Open document' }).click();
    await page.getByRole('heading', { name: 'hours.md' }).waitFor();
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
    for (let stops = 0; stops < 100 && !(await isSkip()); stops++) await page.keyboard.press('Shift+Tab');
    expect(await page.locator('.skip-link').boundingBox()).toMatchObject({ x: 8, y: 8 });
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement!.id)).toBe('main');
  });
});
