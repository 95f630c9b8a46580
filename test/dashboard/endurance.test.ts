// What a page goes through in a day: long names, small screens, keys that end, servers that restart, tabs beside each other.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerEndlessly, canRun, closeBrowser, type DashboardServer, openBrowser, openPage, startDashboardServer } from './support/index.ts'; // prettier-ignore

const TIMEOUT_MS = 600_000;
const HOSTILE =
  '<img src=x onerror="globalThis.pwned=1">[x](javascript:globalThis.pwned=2)\u001b[31m\u202E' + 'W'.repeat(40);
const ALL = ['live', 'audit', 'memory', 'learning', 'models', 'keys'];

type Token = { id: string; token: string };
let server: DashboardServer & { readonly tokens: ReadonlyMap<string, Token> };
const tokenOf = (name: string): string => server.tokens.get(name)!.token;

beforeAll(async () => {
  if (!canRun) return;
  server = await startDashboardServer({ keys: [{ name: 'root', scopes: ['admin'] }], hasEndless: true });
  server.createKey(HOSTILE, '--tenant', HOSTILE);
  await server.ask('/admin/memory/add', { key: tokenOf('root'), method: 'POST', body: { text: HOSTILE } });
  const body = { model: server.model, messages: [{ role: 'user', content: HOSTILE }], max_tokens: 4 };
  await server.ask('/v1/chat/completions', { key: tokenOf('root'), method: 'POST', body });
}, TIMEOUT_MS);
afterAll(async () => {
  await closeBrowser();
  await server?.[Symbol.asyncDispose]();
});

const open = async (page: Page, view: string): Promise<void> => {
  await page.goto(`${server.url}#/${view}`);
  await page.locator('.page h1').waitFor();
  await expect.poll(() => page.locator('.loading').count()).toBe(0);
};
const message = (page: Page) => page.getByRole('textbox', { name: 'Message' });

describe.skipIf(!canRun)('a page', () => {
  test.each([1280, 390])('holds whatever names there are, %i wide', { timeout: TIMEOUT_MS }, async (width) => {
    await using opened = await openPage(server.url, {
      key: tokenOf('root'),
      viewport: { width, height: 800 },
      expectedStatuses: [400],
    });
    const { page } = opened;
    for (const view of [...ALL, `audit/${encodeURIComponent(HOSTILE.repeat(20))}`]) {
      await open(page, view);
      expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), view).toBe(0);
      const cut = await page.locator('.page-head').evaluate((head) => head.scrollWidth - head.clientWidth);
      expect(cut, view).toBeLessThanOrEqual(0);
    }
    expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBe(undefined);
  });

  test('shows the button that revokes a key with a long name', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await open(page, 'keys');
    const button = page.getByRole('button', { name: /^Revoke <img/ });
    const [outer, inner] = [await page.locator('.table-wrap').boundingBox(), await button.boundingBox()];
    expect(inner!.x + inner!.width).toBeLessThanOrEqual(outer!.x + outer!.width);
  });

  test.each(ALL)('leaves nothing of a revoked key, though nobody touches it: %s', async (view) => {
    const { id, token } = server.createKey('leaver', '--scope', 'admin');
    await using opened = await openPage(server.url, { key: token, expectedStatuses: [401] });
    const { page } = opened;
    await page.clock.install();
    await page.reload(); // what was to be done every so often was begun before the clock
    await open(page, view);
    server.revokeKey(id);
    await page.clock.runFor(20_000);
    await page.getByText('You were signed out: the API key is not valid.').waitFor();
    expect(await page.locator('.page, .toast, dialog').count()).toBe(0);
  });

  test('takes its toasts along when it is signed out', async () => {
    const { token } = server.createKey('own end', '--scope', 'admin');
    await using opened = await openPage(server.url, { key: token, expectedStatuses: [401] });
    const { page } = opened;
    await open(page, 'keys');
    await page.clock.install(); // a toast would go by itself
    const own = page.getByRole('row').filter({ hasText: 'good, yours' });
    await own.getByRole('button', { name: /^Revoke/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.locator('.toast').count()).toBe(0);
  });

  test('finds a search, and words that were not sent, where they were left', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await message(page).fill('half a thought');
    await open(page, 'audit');
    await page.getByLabel('With these words').fill('zebra');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('No request passes').waitFor();
    await open(page, 'memory');
    await page.getByLabel('Search by meaning').fill('an image');
    await page.keyboard.press('Enter');
    await page.getByRole('columnheader', { name: 'Near' }).waitFor();
    await page.locator('.grid-row').first().click();
    await page.getByRole('heading', { name: 'Record' }).waitFor();
    await page.goBack();
    await page.getByRole('columnheader', { name: 'Near' }).waitFor();
    expect(await page.getByLabel('Search by meaning').inputValue()).toBe('an image');
    await page.goBack();
    expect(await page.getByLabel('With these words').inputValue()).toBe('zebra');
    await page.getByRole('link', { name: 'Chat' }).click();
    expect(await message(page).inputValue()).toBe('half a thought');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').fill(tokenOf('root'));
    await page.keyboard.press('Enter');
    await message(page).waitFor();
    expect(await message(page).inputValue()).toBe('');
    await page.getByRole('link', { name: 'Audit' }).click();
    expect(await page.getByLabel('With these words').inputValue()).toBe('');
  });

  test('has the conversations of a tab beside it, and forgets them with it', { timeout: TIMEOUT_MS }, async () => {
    const context = await (await openBrowser()).newContext();
    await context.addInitScript((token) => sessionStorage.setItem('ruvllm.key', token), tokenOf('root'));
    const [one, two] = [await context.newPage(), await context.newPage()];
    for (const page of [one, two]) {
      await page.goto(server.url);
      await page.getByLabel('Keep them in this browser').check();
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
    await two.getByLabel('Keep them in this browser').uncheck();
    await expect.poll(() => one.getByLabel('Keep them in this browser').isChecked()).toBe(false);
    expect(await stored()).not.toContain('From');
    await context.close();
  });

  test('says that the server is gone, and goes on when it is back', { timeout: 2 * TIMEOUT_MS }, async () => {
    const [live, chat] = [
      await openPage(`${server.url}#/live`, { key: tokenOf('root') }),
      await openPage(server.url, { key: tokenOf('root') }),
    ];
    await live.page.getByRole('heading', { name: 'Tokens a second' }).waitFor();
    const end = await answerEndlessly(chat.page);
    await message(chat.page).fill('Once upon a time');
    await chat.page.keyboard.press('Enter');
    await chat.page.locator('.message.assistant .markdown').waitFor();
    await server.stop();
    await live.page.getByText('Trying again every two seconds').waitFor();
    await chat.page.getByRole('alert').getByText('the connection to the server was lost').waitFor();
    await end();
    await server.startAgain();
    await live.page.getByText('Trying again every two seconds').waitFor({ state: 'detached' });
    await chat.page.getByRole('button', { name: 'Answer again' }).click();
    await expect.poll(() => chat.page.getByRole('alert').count()).toBe(0); // in its place stands the new one
    await chat.page.locator('.answer-details').waitFor();
    expect(await chat.page.getByRole('alert').count()).toBe(0);
    // A 409 is the answer of a server whose model is not loaded yet.
    const others = [...live.complaints, ...chat.complaints].filter(
      (one) => !/ERR_|net::|network|status of 409/i.test(one),
    );
    expect(others).toEqual([]);
    for (const { page } of [live, chat]) await page.context().close();
  });

  test('does not wait in silence for a server that does not answer', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await page.clock.install();
    await page.reload();
    await message(page).waitFor();
    await page.route('**/admin/**', () => {}); // taken, and never answered
    await page.goto(`${server.url}#/audit`);
    await page.locator('.loading').waitFor();
    await page.clock.runFor(9000);
    await page.getByText('The server has not answered yet').waitFor();
    await page.goto(`${server.url}#/live`);
    await page.locator('.loading').waitFor();
    await page.clock.runFor(11_000);
    await page.getByRole('alert').getByText('the server has said nothing for 10 s').waitFor();
    await page.unroute('**/admin/**');
    await page.clock.runFor(3000);
    await page.getByRole('heading', { name: 'Tokens a second' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('shows the kind of every record whole', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await open(page, 'memory');
    await page.locator('.grid-row .badge', { hasText: 'trajectory' }).first().waitFor();
    const cut = await page
      .locator('.grid-row [role=gridcell]:has(.badge)')
      .evaluateAll((cells) =>
        cells.filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent),
      );
    expect(cut).toEqual([]);
  });

  test('says why a loop of learning cannot be stopped', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root'), expectedStatuses: [409] });
    const { page } = opened;
    const asked = { key: tokenOf('root'), method: 'POST', body: {} };
    const status = (await (await server.ask('/admin/learning/status', asked)).json()) as {
      models: { model: string }[];
    };
    const runs = [{ model: status.models[0]!.model, loop: 'background', state: 'running' }];
    await page.route('**/admin/learning/status', (route) => route.fulfill({ json: { ...status, runs } }));
    await page.route('**/admin/learning/cancel', (route) =>
      route.fulfill({ status: 409, json: { error: { message: 'it ends <b>now</b>', code: 'conflict' } } }),
    );
    await open(page, 'learning');
    await page.getByRole('button', { name: 'Stop it' }).click();
    await page.getByRole('alert').getByText('it ends <b>now</b>').waitFor();
  });

  test('has boxes of one size to tick, on a phone too', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root'), viewport: { width: 390, height: 800 } });
    const { page } = opened;
    await open(page, 'keys');
    await page.getByRole('button', { name: 'Create key' }).click();
    const sizes = await page.getByRole('checkbox').evaluateAll((all) => all.map((one) => one.clientWidth));
    expect(sizes).toEqual([18, 18, 18]);
  });

  test('gives words that were not sent to nobody who signs in later', { timeout: TIMEOUT_MS }, async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root') });
    const { page } = opened;
    await page.getByLabel('Keep them in this browser').check();
    await message(page).fill('Kept');
    await page.keyboard.press('Enter');
    await page.locator('.answer-details').waitFor();
    await expect.poll(() => page.evaluate(() => JSON.stringify(localStorage))).toContain('Kept');
    await message(page).fill('half a thought');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').fill(tokenOf('root'));
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Kept', exact: true }).click();
    await page.getByRole('article', { name: 'You' }).waitFor();
    expect(await message(page).inputValue()).toBe('');
  });
});
