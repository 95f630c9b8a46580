// The list of conversations and links to them.
import { beforeAll, describe, expect, test } from 'vitest';
import { canRun, type DashboardServer, openPage, sharedDashboardServer } from './support/index.ts';

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('open');
});

/** Stores a conversation of one question and its answer. */
async function store(id: string, title: string, answer: string, version = 0, isPinned = false): Promise<void> {
  const message = (role: string, text: string) => ({ id: `${id}-${role}`, role, text, state: 'done' });
  const messages = [message('user', title), message('assistant', answer)];
  const content = { id, title, isPinned, messages };
  const body = { title, is_pinned: isPinned, version, request_ids: [], content };
  expect((await server.ask(`/v1/chats/${id}`, { method: 'POST', body })).status).toBe(200);
}

describe.skipIf(!canRun)('stored conversations', () => {
  test('a link opens one on a new page, and a change by another page is shown', async () => {
    await store('linked', 'A linked question', 'The first answer.');
    await using opened = await openPage(`${server.url}#/chat/linked`);
    const { page } = opened;
    await page.getByText('The first answer.').waitFor();
    await store('linked', 'A linked question', 'The second answer.', 1);
    // The page looks for changes when it becomes visible.
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await page.getByText('The second answer.').waitFor();
  });

  test('the message box stays at the bottom while one is loading', async () => {
    await store('slow', 'A slow question', 'A slow answer.');
    await using opened = await openPage(server.url);
    const { page } = opened;
    const composer = page.getByRole('textbox', { name: 'Message' });
    const before = (await composer.boundingBox())!.y;
    let release = (): void => {};
    await page.route('**/v1/chats/slow', async (route) => {
      await new Promise<void>((resolve) => (release = resolve));
      await route.continue();
    });
    await page.getByRole('button', { name: 'A slow question', exact: true }).click();
    await page.getByText('Loading the conversation').waitFor();
    expect((await composer.boundingBox())!.y).toBe(before);
    release();
    await page.getByText('A slow answer.').waitFor();
  });

  test('hundreds of them scroll between the search and the buttons, and a pinned title has one line', async () => {
    for (let i = 0; i < 60; i++) await store(`many-${i}`, `Conversation number ${i} with a long title`, 'x');
    await store('pinned', 'A pinned question', 'x', 0, true);
    await using opened = await openPage(server.url);
    const { page } = opened;
    await page.getByRole('button', { name: /Pinned.*A pinned question/ }).waitFor();
    const heightOf = async (name: RegExp) => (await page.getByRole('button', { name }).first().boundingBox())!.height;
    expect(await heightOf(/A pinned question$/)).toBe(await heightOf(/^Conversation number/));
    const button = (await page.getByRole('button', { name: 'Import', exact: true }).boundingBox())!;
    expect(button.y + button.height).toBeLessThanOrEqual(800);
    const list = page.locator('.conversations ul');
    expect(await list.evaluate((element) => element.scrollHeight > element.clientHeight)).toBe(true);
  });
});
