import { beforeAll, describe, expect, test } from 'vitest';
import {
  canRun,
  type DashboardServer,
  findLayoutFaults,
  findViolations,
  openPage,
  sharedDashboardServer,
} from './support/index.ts';

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('bare');
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

  test('also applies to charts, sizes and the navigation of a phone', async () => {
    const phone = { viewport: { width: 360, height: 740 }, locale: 'de-DE' };
    await using opened = await openPage(`${server.url}#/models`, phone);
    const { page } = opened;
    await page
      .getByRole('row')
      .getByText(/^\d+,\d MiB$/)
      .first()
      .waitFor();
    const cut = await page.locator('.nav-link').evaluateAll((links) =>
      links.filter((link) => link.scrollWidth > link.clientWidth).map((link) => link.textContent),
    ); // prettier-ignore
    expect(cut).toEqual([]);
    await page.goto(`${server.url}#/live`);
    const legend = page.locator('.u-legend').first();
    await legend.getByText('Zeit').waitFor();
    expect(await legend.innerText()).not.toContain('--');
    expect(await findLayoutFaults(page)).toEqual([]);
  });

  test('is that of the browser until one is chosen', async () => {
    await using opened = await openPage(`${server.url}#/models`, { locale: 'zh-CN' });
    await opened.page.getByRole('navigation').getByRole('link', { name: '模型' }).waitFor();
    expect(await opened.page.locator('html').getAttribute('lang')).toBe('zh');
    expect(await findViolations(opened.page)).toEqual([]);
  });
});
