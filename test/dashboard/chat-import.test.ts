// Conversations from files, presets, and answers that reached their limit, in real Chromium with a real model.
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  answerBriefly,
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

const messageBox = (page: Page) => page.getByRole('textbox', { name: 'Message' });
const openSettings = (page: Page) => page.getByRole('button', { name: 'Generation settings' }).click();
const preset = (page: Page) => page.getByRole('dialog').getByRole('combobox', { name: 'Preset' });
const shownPreset = (page: Page): Promise<string> =>
  preset(page).evaluate((select) => (select as HTMLSelectElement).selectedOptions[0]!.text);
const importFile = (page: Page, name: string, text: string): Promise<void> =>
  page.getByLabel('Conversations to import').setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(text) }); // prettier-ignore

async function ask(page: Page, text: string): Promise<void> {
  await messageBox(page).fill(text);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Good answer' }).last().waitFor();
}

describe.skipIf(!canRun)('a conversation', () => {
  test('that was exported comes back from its file, on another server too', async () => {
    const other = await sharedDashboardServer('bare');
    await using first = await openPage(server.url);
    const title = `Export ${crypto.randomUUID()}`;
    await openSettings(first.page);
    await first.page.getByLabel('Max tokens').fill('6');
    await first.page.getByLabel('System prompt').fill('Tell stories.');
    await first.page.getByRole('button', { name: 'Apply' }).click();
    await ask(first.page, title);
    const answer = await drawnText(first.page.locator('.message.assistant'));
    await first.page.getByRole('button', { name: `Options of ${title}` }).click();
    const download = first.page.waitForEvent('download');
    await first.page.getByRole('button', { name: 'JSON' }).click();
    const json = readFileSync((await (await download).path())!, 'utf8');
    for (const url of [other.url, server.url]) {
      await using opened = await openPage(url);
      const { page } = opened;
      await messageBox(page).waitFor();
      await importFile(page, 'one.json', json);
      await page.getByText('Imported 1 conversation.').waitFor();
      expect(await page.getByRole('article', { name: 'You' }).locator('.bubble').innerText()).toBe(title);
      // The last words may have been drawn after the answer was read.
      const imported = await drawnText(page.locator('.message.assistant'));
      expect(imported.startsWith(answer.trimEnd()), `${imported} starts with ${answer}`).toBe(true);
      await openSettings(page);
      expect(await page.getByLabel('System prompt').inputValue()).toBe('Tell stories.');
      await page.keyboard.press('Escape');
    }
    // Beside the original, not over it.
    const stored = async (): Promise<number> => {
      const { data } = (await (await server.ask('/v1/chats')).json()) as { data: { title: string }[] };
      return data.filter((one) => one.title === title).length;
    };
    await expect.poll(stored).toBe(2);
  });

  test('from a hostile file stays text, and a wrong file adds nothing and says why', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await messageBox(page).waitFor();
    const hostile = '<img src=x onerror="globalThis.pwned=1"><script>globalThis.pwned=2</script>';
    const file = {
      title: hostile,
      messages: [
        { role: 'user', text: hostile },
        {
          role: 'assistant',
          text: `${hostile} [a](javascript:globalThis.pwned=3) $\\href{javascript:globalThis.pwned=4}{x}$`,
          details: { requestId: '"><img>', model: hostile, sources: [{ number: 1, kind: 'document', id: 'javascript:alert(1)', part: { name: hostile } }] },
          toolCalls: [{ id: 'x', name: hostile, arguments: hostile, result: hostile }],
          verdict: { thumbs: 'up', correction: hostile },
        },
      ],
    }; // prettier-ignore
    await importFile(page, 'hostile.json', JSON.stringify([file]));
    await page.getByText('Imported 1 conversation.').waitFor();
    await page.getByRole('article', { name: 'Answer' }).waitFor();
    const active = await page.locator('main').evaluate((main) => [
      ...[...main.querySelectorAll('img, script, iframe, object, embed')].map(({ tagName }) => tagName),
      ...[...main.querySelectorAll('a')].map((link) => link.getAttribute('href') ?? '').filter((href) => !/^(?:#|https?:)/.test(href)),
    ]); // prettier-ignore
    expect(active).toEqual([]);
    const before = await page.locator('.chat-side .conversation').count();
    for (const [name, text, reason] of [
      ['broken.json', '{"messages": [', 'broken.json was not imported: The file is not valid JSON'],
      ['other.json', '{"a": 1}', 'other.json was not imported: The file has no messages.'],
      ['role.json', '{"messages": [{"role": "root", "text": "x"}]}', 'role.json was not imported: A message has the role "root"'],
    ] as const) {
      await importFile(page, name, text);
      await page.getByRole('alert').getByText(reason).waitFor();
    } // prettier-ignore
    expect(await page.locator('.chat-side .conversation').count()).toBe(before);
    expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBe(undefined);
  });

  test('takes a file with a hostile name as a document, and shows the name as text', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await messageBox(page).waitFor();
    const name = '"><img src=x onerror="globalThis.pwned=1">\u202Egnp.md';
    const buffer = Buffer.from('# <script>globalThis.pwned=2</script>\n\nThe quokka opens at nine.\n');
    await page.getByLabel('Files to add').setInputFiles({ name, mimeType: 'text/markdown', buffer });
    const shown = name.replace('\u202E', '⟦U+202E⟧');
    await page.getByText(`${shown}: 1 chunk.`).waitFor();
    await answerBriefly(page);
    await ask(page, 'When does the quokka open?');
    await page.getByRole('region', { name: 'Sources' }).getByText(shown).click();
    await page.getByRole('link', { name: 'Open document' }).click();
    await page.getByRole('heading', { name: shown }).waitFor();
    expect(await page.locator('main :is(img, script)').count()).toBe(0);
    expect(await page.evaluate(() => (globalThis as { pwned?: number }).pwned)).toBe(undefined);
  });

  test('takes its settings from a preset, and keeps own ones in the browser', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await openSettings(page);
    expect(await shownPreset(page)).toBe('Default');
    // What counts without a value is the value, not the word "default".
    await page.locator('input[placeholder="0.7 (default)"]').waitFor();
    await preset(page).selectOption('Precise');
    expect(await page.getByLabel('Temperature').inputValue()).toBe('0');
    await page.getByLabel('Max tokens').fill('5');
    expect(await shownPreset(page)).toBe('Custom');
    await page.getByLabel('System prompt').fill('Be brief.');
    await page.getByLabel('Save as preset').fill('Short');
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
    expect(await shownPreset(page)).toBe('Short');
    expect(await findViolations(page)).toEqual([]);
    await preset(page).selectOption('Default');
    expect(await page.getByLabel('Max tokens').inputValue()).toBe('');
    await page.reload();
    await openSettings(page);
    await preset(page).selectOption('Short');
    expect(await page.getByLabel('Max tokens').inputValue()).toBe('5');
    expect(await page.getByLabel('System prompt').inputValue()).toBe('Be brief.');
    await page.getByRole('button', { name: 'Delete preset' }).click();
    expect(await shownPreset(page)).toBe('Custom');
  });

  test('continues an answer that reached the token limit, in the same message', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    await openSettings(page);
    await page.getByLabel('Max tokens').fill('8');
    await page.getByLabel('Temperature').fill('0');
    await page.getByRole('button', { name: 'Apply' }).click();
    await ask(page, 'Once upon a time there was a fox');
    await page.getByText('Stopped: token limit.').waitFor();
    expect(await page.getByRole('status').filter({ hasText: 'token limit' }).count()).toBe(1);
    const text = page.locator('.message.assistant .markdown');
    const before = await text.innerText();
    await page.getByRole('button', { name: 'Continue' }).click();
    await expect.poll(async () => (await text.innerText()).length).toBeGreaterThan(before.length);
    await page.getByRole('button', { name: 'Continue' }).waitFor();
    expect((await text.innerText()).startsWith(before)).toBe(true);
    expect(await page.getByRole('article', { name: 'Answer' }).count()).toBe(1);
  });
});
