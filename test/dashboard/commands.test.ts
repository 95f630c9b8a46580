import { beforeAll, describe, expect, test } from 'vitest';
import { answerWith, canRun, type DashboardServer, findViolations, openPage, sharedDashboardServer } from './support/index.ts'; // prettier-ignore

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('open');
});

describe.skipIf(!canRun)('the page', () => {
  test('opens views, conversations and dialogs', async () => {
    await using opened = await openPage(server.url);
    const { page } = opened;
    const message = page.getByRole('textbox', { name: 'Message' });
    await answerWith(page, 'Yes.');
    await message.fill('Is water wet?');
    await page.keyboard.press('Enter');
    await page.getByText('Yes.').waitFor();
    // Twice: the second one must work, too.
    for (let i = 0; i < 2; i++) {
      await page.keyboard.press('Alt+n');
      await page.getByText('What would you like to know?').waitFor();
      await page.keyboard.press('Control+k');
      const command = page.getByRole('combobox', { name: 'Command' });
      await command.waitFor();
      await page.keyboard.type('water'); // the palette has the focus
      if (i === 0) expect(await findViolations(page)).toEqual([]);
      await page.keyboard.press('Enter');
      await page.getByText('Yes.').waitFor();
      expect(await command.count()).toBe(0);
    }
    await page.keyboard.press('Alt+2');
    await page.getByRole('heading', { name: 'Live' }).waitFor();
    await page.keyboard.press('?');
    await page.getByRole('dialog').getByText('Start a new conversation').waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Command' }).fill('go to');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Audit log' }).waitFor();
    // A question mark in a text is a question mark.
    await page.keyboard.press('Alt+1');
    await message.press('?');
    expect(await message.inputValue()).toContain('?');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('can be installed', async () => {
    const manifest = await server.ask('/manifest.webmanifest');
    expect(manifest.headers.get('content-type')).toBe('application/manifest+json');
    const { icons, display } = (await manifest.json()) as { icons: { src: string }[]; display: string };
    expect(display).toBe('standalone');
    expect((await server.ask(icons[0]!.src)).headers.get('content-type')).toBe('image/svg+xml');
  });

  test('shows the facts about a model, and its sampling', async () => {
    await using opened = await openPage(`${server.url}#/models`);
    const { page } = opened;
    await page.getByRole('region', { name: 'Served models' }).getByRole('button', { name: /stories260K/ }).first().click(); // prettier-ignore
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Quantization', { exact: true }).waitFor();
    expect(await dialog.innerText()).toMatch(/F32[\s\S]*512 tokens of 512 trained[\s\S]*KV cache/);
    expect(await findViolations(page)).toEqual([]);
  });
});
