// Long-running use: long names, small screens, revoked keys, server restarts, several tabs.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  answerBriefly,
  answerEndlessly,
  canRun,
  type DashboardServer,
  openBrowser,
  openPage,
  sharedDashboardServer,
  startDashboardServer,
} from './support/index.ts';

const TIMEOUT_MS = 600_000;
const HOSTILE =
  '<img src=x onerror="globalThis.pwned=1">[x](javascript:globalThis.pwned=2)\u001b[31m\u202E' + 'W'.repeat(40);
const ALL = ['live', 'audit', 'memory', 'learning', 'models', 'keys'];

let server: DashboardServer;
const tokenOf = (name: string): string => server.tokens.get(name)!.token;

beforeAll(async () => {
  if (!canRun) return;
  server = await startDashboardServer({ keys: { root: ['admin'] }, hasEndless: true });
  await server.createKey(HOSTILE, HOSTILE, ['inference']);
  await server.ask('/admin/memory/add', { key: tokenOf('root'), method: 'POST', body: { text: HOSTILE } });
  const body = { model: server.model, messages: [{ role: 'user', content: HOSTILE }], max_tokens: 4 };
  await server.ask('/v1/chat/completions', { key: tokenOf('root'), method: 'POST', body });
}, TIMEOUT_MS);
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

const open = async (page: Page, view: string): Promise<void> => {
  await page.goto(`${server.url}#/${view}`);
  await page.locator('.page h1').waitFor();
  await expect.poll(() => page.locator('.loading').count()).toBe(0);
};
const message = (page: Page) => page.getByRole('textbox', { name: 'Message' });

describe.skipIf(!canRun)('a page', () => {
  test.each([1280, 390])('fits names of any length at a width of %i px', { timeout: TIMEOUT_MS }, async (width) => {
    await using opened = await openPage(server.url, {
      key: tokenOf('root'),
      viewport: { width, height: 800 },
      expectedStatuses: [400],
    });
    const { page } = opened;
    for (const view of [...ALL, `audit/${encodeURIComponent(HOSTILE.repeat(20))}`]) {
      await open(page, view);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), view).toBe(0);
      const overflow = await page.locator('.page-head').evaluate((head) => head.scrollWidth - head.clientWidth);
      expect(overflow, view).toBeLessThanOrEqual(0);
    }
    expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBe(undefined);
  });

  test('keeps the revoke button of a key with a long name visible', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await open(page, 'keys');
    const button = page.getByRole('button', { name: /^Revoke <img/ });
    const [outer, inner] = [await page.locator('.table-wrap').boundingBox(), await button.boundingBox()];
    expect(inner!.x + inner!.width).toBeLessThanOrEqual(outer!.x + outer!.width);
  });

  test('clears every idle view after its key is revoked, and removes toasts on sign-out', { timeout: TIMEOUT_MS }, async () => {
    await using opened = await openPage(server.url, { expectedStatuses: [401] });
    const { page } = opened;
    await page.clock.install();
    await page.reload(); // the page started its timers before the fake clock was installed
    const signIn = async (token: string, view: string): Promise<void> => {
      await page.getByLabel('API key').fill(token);
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Sign out' }).waitFor();
      await open(page, view);
    };
    for (const view of ALL) {
      const { id, token } = await server.createKey('leaver', 'leaver', ['admin']);
      await signIn(token, view);
      await server.revokeKey(id);
      await page.clock.fastForward(20_000);
      await page.getByText('You were signed out: the API key is not valid.').waitFor();
      expect(await page.locator('.page, .toast, dialog').count(), view).toBe(0);
    }
    const { token } = await server.createKey('self-revoked', 'leaver', ['admin']);
    await signIn(token, 'keys');
    const ownRow = page.getByRole('row').filter({ hasText: 'active (yours)' });
    await ownRow.getByRole('button', { name: /^Revoke/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.locator('.toast').count()).toBe(0); // the clock of the page stands still
  }); // prettier-ignore

  test('keeps searches and unsent text when switching views, and clears them on sign-out', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await message(page).fill('half a thought');
    await open(page, 'audit');
    await page.getByLabel('Contains text').fill('zebra');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('No requests match these filters').waitFor();
    await open(page, 'memory');
    await page.getByLabel('Semantic search').fill('an image');
    await page.keyboard.press('Enter');
    await page.getByRole('columnheader', { name: 'Similarity' }).waitFor();
    await page.locator('.grid-row').first().click();
    await page.getByRole('heading', { name: 'Record' }).waitFor();
    await page.goBack();
    await page.getByRole('columnheader', { name: 'Similarity' }).waitFor();
    expect(await page.getByLabel('Semantic search').inputValue()).toBe('an image');
    await page.goBack();
    expect(await page.getByLabel('Contains text').inputValue()).toBe('zebra');
    await page.getByRole('link', { name: 'Chat' }).click();
    expect(await message(page).inputValue()).toBe('half a thought');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').fill(tokenOf('root'));
    await page.keyboard.press('Enter');
    await message(page).waitFor();
    expect(await message(page).inputValue()).toBe('');
    await page.getByRole('link', { name: 'Audit log' }).click();
    expect(await page.getByLabel('Contains text').inputValue()).toBe('');
  });

  test(
    'keeps conversations in the browser without a memory, shares them between tabs and deletes them in both',
    { timeout: TIMEOUT_MS },
    async () => {
      const bare = await sharedDashboardServer('bare');
      const context = await (await openBrowser()).newContext();
      const [one, two] = [await context.newPage(), await context.newPage()];
      for (const page of [one, two]) {
        await answerBriefly(page);
        await page.goto(bare.url);
        await page.getByLabel('Keep conversations in this browser').waitFor();
      }
      const stored = () => one.evaluate(() => JSON.stringify(localStorage));
      for (const [page, text] of [
        [one, 'From one'],
        [two, 'From two'],
      ] as const) {
        await message(page).fill(text);
        await page.keyboard.press('Enter');
        await page.locator('.answer-details').waitFor();
        await expect.poll(stored).toContain(text);
      }
      expect(await stored()).toContain('From one');
      await one.getByRole('button', { name: 'From two', exact: true }).waitFor();
      await two.getByLabel('Keep conversations in this browser').uncheck();
      await expect.poll(() => one.getByLabel('Keep conversations in this browser').isChecked()).toBe(false);
      expect(await stored()).not.toContain('From');
      await context.close();
    },
  );

  test('reports a lost server and recovers when it is back', { timeout: 2 * TIMEOUT_MS }, async () => {
    const [live, chat] = [
      await openPage(`${server.url}#/live`, { key: tokenOf('root') }),
      await openPage(server.url, { key: tokenOf('root') }),
    ];
    await live.page.getByRole('heading', { name: 'Tokens/s' }).waitFor();
    const end = await answerEndlessly(chat.page);
    await message(chat.page).fill('Once upon a time');
    await chat.page.keyboard.press('Enter');
    await chat.page.locator('.message.assistant .markdown').waitFor();
    await server.stop();
    await live.page.getByText('Reconnecting every 2 s').waitFor();
    await chat.page.getByRole('alert').getByText('Lost the connection to the server').waitFor();
    await end();
    await answerBriefly(chat.page);
    await server.restart();
    await live.page.getByText('Reconnecting every 2 s').waitFor({ state: 'detached' });
    await chat.page.getByRole('button', { name: 'Regenerate answer' }).click();
    await expect.poll(() => chat.page.getByRole('alert').count()).toBe(0); // the new answer replaces the failed one
    await chat.page.locator('.answer-details').waitFor();
    expect(await chat.page.getByRole('alert').count()).toBe(0);
    // The restarted server answers 409 until its model is loaded.
    const others = [...live.complaints, ...chat.complaints].filter(
      (complaint) => !/ERR_|net::|network|status of 409/i.test(complaint),
    );
    expect(others).toEqual([]);
    for (const { page } of [live, chat]) await page.context().close();
  });

  test('reports a server that does not answer', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await page.clock.install();
    await page.reload();
    await message(page).waitFor();
    await page.route('**/admin/**', () => {}); // accepted, but never answered
    await page.goto(`${server.url}#/audit`);
    await page.locator('.loading').waitFor();
    await page.clock.fastForward(9000);
    await page.getByText('The server has not answered yet').waitFor();
    // The spinner may still be that of the audit log, and the clock must not jump before the timer of this view is set.
    const asked = page.waitForRequest('**/admin/live/history');
    await page.goto(`${server.url}#/live`);
    await asked;
    await page.clock.fastForward(11_000);
    await page.getByRole('alert').getByText('No update from the server for 10 s').waitFor();
    await page.unroute('**/admin/**');
    await page.clock.runFor(3000);
    await page.getByRole('heading', { name: 'Tokens/s' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('shows the kind of every record without truncation', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await open(page, 'memory');
    await page
      .locator('.grid-row .badge', { hasText: /^Answer$/ })
      .first()
      .waitFor();
    const truncatedTexts = await page
      .locator('.grid-row [role=gridcell]:has(.badge)')
      .evaluateAll((cells) =>
        cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent),
      );
    expect(truncatedTexts).toEqual([]);
  });

  test('shows why a learning loop cannot be stopped', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root'), expectedStatuses: [409] });
    const { page } = opened;
    const options = { key: tokenOf('root'), method: 'POST', body: {} };
    const status = (await (await server.ask('/admin/learning/status', options)).json()) as {
      models: { model: string }[];
    };
    const runs = [{ model: status.models[0]!.model, loop: 'background', state: 'running' }];
    await page.route('**/admin/learning/status', (route) => route.fulfill({ json: { ...status, runs } }));
    await page.route('**/admin/learning/cancel', (route) =>
      route.fulfill({ status: 409, json: { error: { message: 'it ends <b>now</b>', code: 'conflict' } } }),
    );
    await open(page, 'learning');
    await page.getByRole('tab', { name: 'Versions' }).click();
    await page.getByRole('button', { name: 'Stop training' }).click();
    await page.getByRole('alert').getByText('it ends <b>now</b>').waitFor();
  });

  test('draws all checkboxes at the same size on a phone', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root'), viewport: { width: 390, height: 800 } });
    const { page } = opened;
    await open(page, 'keys');
    await page.getByRole('button', { name: 'Create key' }).click();
    const sizes = await page.getByRole('checkbox').evaluateAll((all) => all.map((one) => one.clientWidth));
    expect(sizes).toEqual([18, 18, 18, 18]);
  });

  test('does not show unsent text to the next user', { timeout: TIMEOUT_MS }, async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await answerBriefly(page);
    await message(page).fill('Kept');
    await page.keyboard.press('Enter');
    await page.locator('.answer-details').waitFor();
    await expect.poll(async () => (await server.ask('/v1/chats', { key: tokenOf('root') })).text()).toContain('Kept');
    await message(page).fill('half a thought');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').fill(tokenOf('root'));
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Kept', exact: true }).click();
    await page.getByRole('article', { name: 'You' }).waitFor();
    expect(await message(page).inputValue()).toBe('');
  });
});
