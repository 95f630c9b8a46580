import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { canRun, type DashboardServer, findViolations, openPage, startDashboardServer } from './support/index.ts';

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await startDashboardServer({ args: ['--no-memory'] });
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

describe.skipIf(!canRun)('language', () => {
  test('changes with the menu, keeps an unsent message, and survives a reload', async () => {
    await using opened = await openPage(server.url);
    const { page, requests } = opened;
    const navigation = page.getByRole('navigation');
    await page.locator('.composer textarea').fill('An unsent question');
    await page.getByRole('combobox', { name: 'Language' }).selectOption('Deutsch');
    await navigation.getByRole('link', { name: 'Modelle' }).waitFor();
    expect(await page.locator('html').getAttribute('lang')).toBe('de');
    expect(await page.locator('.composer textarea').inputValue()).toBe('An unsent question');
    // The draft also survives when another view is shown.
    await navigation.getByRole('link', { name: 'Modelle' }).click();
    await page.getByRole('heading', { level: 1, name: 'Modelle' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    requests.length = 0;
    await page.reload();
    await page.getByRole('heading', { level: 1, name: 'Modelle' }).waitFor();
    // Of the message files, only that of the chosen language is loaded; English is in the main file.
    expect(requests.filter((url) => /\/assets\/(?:de|zh|en)-/.test(url)).map((url) => /\/(..)-/.exec(url)![1])).toEqual(['de']); // prettier-ignore
    await page.keyboard.press('Alt+1');
    expect(await page.locator('.composer textarea').inputValue()).toBe('An unsent question');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Befehl' }).fill('english');
    await page.keyboard.press('Enter');
    await navigation.getByRole('link', { name: 'Models' }).waitFor();
    expect(await page.locator('html').getAttribute('lang')).toBe('en');
  });

  test('is that of the browser until one is chosen', async () => {
    await using opened = await openPage(`${server.url}#/models`, { locale: 'zh-CN' });
    await opened.page.getByRole('navigation').getByRole('link', { name: '模型' }).waitFor();
    expect(await opened.page.locator('html').getAttribute('lang')).toBe('zh');
    expect(await findViolations(opened.page)).toEqual([]);
  });
});
