// A model of the server that runs in the tab of the dashboard.
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerBriefly, canRun, countViolations, type DashboardServer, drawnText, findLayoutFaults, openPage, sharedTenant, startDashboardServer } from './support/index.ts'; // prettier-ignore

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await startDashboardServer();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

const send = async (page: Page, text: string): Promise<void> => {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
};
const answers = (page: Page) => page.locator('.message.assistant');
/** Waits until the last of `count` answers is complete. */
async function waitForAnswer(page: Page, count: number): Promise<string> {
  await expect.poll(() => answers(page).count()).toBe(count);
  await answers(page).last().and(page.locator('[aria-busy=false]')).waitFor();
  return drawnText(answers(page).last());
}
/** Errors of requests to a server that was killed before them or while they ran. */
const SERVER_GONE = /net::ERR_(?:CONNECTION_REFUSED|CONNECTION_RESET|EMPTY_RESPONSE)/;
const runButton = (page: Page) => page.getByRole('button', { name: 'Run in this tab' });

/** Few tokens and always the same, so that answers can be compared. */
async function beGreedy(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Generation settings' }).click();
  await page.getByLabel('Max tokens').fill('12');
  await page.getByLabel('Temperature').fill('0');
  await page.getByRole('button', { name: 'Apply' }).click();
}

async function runInTab(page: Page, button = 'Download and run'): Promise<void> {
  await runButton(page).click();
  await page.getByRole('button', { name: button, exact: true }).click();
  await page.getByText(/answers in this tab with \d+ threads?\./).waitFor();
  await page.keyboard.press('Escape');
}

/** Requests for answers that the server has seen. */
async function countAnswers({ ask }: DashboardServer): Promise<number> {
  const metrics = await (await ask('/metrics')).text();
  return [...metrics.matchAll(/^ruvllm_answers_total\{[^}]*\} (\d+)/gm)].reduce((sum, [, count]) => sum + Number(count), 0); // prettier-ignore
}

describe.skipIf(!canRun)('a model in the tab', () => {
  test('is downloaded when the user asks, gives the answers of the server, and goes on when the server is stopped', async () => {
    await using opened = await openPage(server.url);
    const { page, requests, complaints } = opened;
    await beGreedy(page);
    await send(page, 'Once upon a time there was a dragon');
    const fromServer = await waitForAnswer(page, 1);
    expect(requests.filter((url) => /\/engine\/|model-files/.test(url))).toEqual([]);
    expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);

    await runButton(page).click();
    await page.getByText('Downloads the model (').waitFor();
    expect(await countViolations(page)).toBe(0);
    await page.keyboard.press('Escape');
    await runInTab(page);
    await page.getByText('Answers are generated in this tab.').waitFor();
    expect(await countViolations(page)).toBe(0);
    expect(await findLayoutFaults(page)).toEqual([]);
    const numThreads = await page.evaluate(() => navigator.hardwareConcurrency);
    await runButton(page).click();
    await page.getByText(`answers in this tab with ${numThreads} thread`).waitFor();
    await page.keyboard.press('Escape');

    const before = await countAnswers(server);
    await page.getByRole('button', { name: 'New conversation' }).first().click();
    await page.getByText('Your messages are answered in this tab.').waitFor();
    await send(page, 'Once upon a time there was a dragon');
    expect(await waitForAnswer(page, 1)).toBe(fromServer);
    expect(await countAnswers(server)).toBe(before);
    await answers(page).last().getByText('in this tab ·').waitFor();
    // The server does not know the answer, and cannot learn from it.
    expect(await page.getByRole('button', { name: 'Good answer' }).count()).toBe(0);

    await server.stop();
    await send(page, 'The next day');
    expect((await waitForAnswer(page, 2)).length).toBeGreaterThan(0);
    await answers(page).last().getByText('in this tab ·').waitFor();
    await send(page, 'And then');
    await waitForAnswer(page, 3);
    await server.restart();
    // The page cannot save the conversation meanwhile, and says so.
    for (const complaint of complaints.splice(0)) expect(complaint).toMatch(SERVER_GONE);

    await page.reload();
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    requests.length = 0;
    await runInTab(page, 'Run');
    const files = requests.filter((url) => url.includes('model-files'));
    expect(files).toHaveLength(1); // its size and hash
    await page.getByRole('button', { name: 'Use the server again' }).click();
    await expect.poll(() => page.getByText('Answers are generated in this tab.').count()).toBe(0);
    await send(page, 'From here');
    await expect.poll(() => countAnswers(server)).toBe(1);
    for (const complaint of complaints.splice(0)) expect(complaint).toMatch(SERVER_GONE);
  });

  test('a cancelled download continues, and the model can be deleted from the browser', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    await page.context().route('**/v1/model-files/**', async (route) => {
      if (route.request().method() === 'GET') await gate;
      await route.continue().catch(() => {}); // aborted meanwhile
    });
    await runButton(page).click();
    await page.getByRole('button', { name: 'Download and run' }).click();
    await page.getByRole('progressbar').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Download and run' }).waitFor();
    release();
    await page.getByRole('button', { name: 'Download and run' }).click();
    await page.getByText(/answers in this tab with/).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Use the server again' }).click();
    await page.getByRole('button', { name: 'Delete from this browser' }).click();
    await page.getByRole('button', { name: 'Download and run' }).waitFor();
    const stored = await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const folder = await (await root.getDirectoryHandle('ruvllm')).getDirectoryHandle('models');
      const names: string[] = [];
      for await (const name of (folder as unknown as { keys(): AsyncIterable<string> }).keys()) names.push(name);
      return names;
    });
    expect(stored).toEqual([]);
  });

  test('says that its worker ended; the server answers again', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await runInTab(page);
    const engine = page.workers().find((worker) => worker.url().endsWith('engine-worker.js'))!;
    void engine.evaluate(() => (globalThis as unknown as { close(): void }).close()).catch(() => {});
    await page.getByText(/The model in this tab stopped: /).waitFor();
    await answerBriefly(page);
    await send(page, 'Once');
    await page.getByRole('button', { name: 'Good answer' }).last().waitFor();
  });

  test('is offered only to keys that may download models, and the route refuses the others', async () => {
    const closed = await sharedTenant('tab', { chat: ['inference'], tab: ['inference', 'download'] });
    const token = (name: string): string => closed.tokens.get(name)!.token;
    const path = `/v1/model-files/${closed.model}`;
    expect((await closed.ask(path)).status).toBe(401);
    expect((await closed.ask(path, { key: token('chat') })).status).toBe(403);
    {
      await using opened = await openPage(closed.url, { key: token('chat') });
      await opened.page.getByRole('button', { name: 'Generation settings' }).waitFor();
      await expect.poll(() => opened.page.locator('.chat-bar option').count()).toBeGreaterThan(0);
      expect(await runButton(opened.page).count()).toBe(0);
    }
    await using opened = await openPage(closed.url, { key: token('tab'), viewport: { width: 360, height: 740 } });
    await runInTab(opened.page);
    await send(opened.page, 'Once upon a time');
    await waitForAnswer(opened.page, 1);
    expect(await findLayoutFaults(opened.page)).toEqual([]);
  });
});
