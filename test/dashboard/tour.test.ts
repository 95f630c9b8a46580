import { beforeAll, describe, expect, test } from 'vitest';
import {
  canRun,
  type DashboardServer,
  findViolations,
  openPage,
  screensOf,
  sharedDashboardServer,
} from './support/index.ts';

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('bare');
});

describe.skipIf(!canRun)('tour', () => {
  test.each(screensOf('dark phone'))('explains the page without covering it, and ends', async (screen) => {
    await using opened = await openPage(server.url, { ...screen, hasTour: true });
    const { page } = opened;
    const tour = page.getByRole('complementary', { name: 'Tour' });
    await tour.getByText('Ask a question here').waitFor();
    expect(await page.locator('.nav-link[data-tour]').innerText()).toBe('Chat');
    expect(await findViolations(page)).toEqual([]);
    // Everything else works meanwhile; Playwright fails if the tour covers the field or the link.
    await page.getByRole('textbox', { name: 'Message' }).click();
    await page.getByRole('navigation').getByRole('link', { name: 'Models' }).click();
    await page.getByRole('heading', { level: 1, name: 'Models' }).waitFor();
    const numSteps = Number(/of (\d)/.exec(await tour.innerText())![1]);
    for (let step = 1; step < numSteps; step++) await tour.getByRole('button', { name: 'Next' }).click();
    await tour.getByText('Ctrl K').waitFor();
    await tour.getByRole('button', { name: 'Done' }).click();
    expect(await tour.count()).toBe(0);
  });

  test('stays skipped on the next visit, until it is started from the palette', async () => {
    await using opened = await openPage(server.url, { hasTour: true });
    const { page } = opened;
    const tour = page.getByRole('complementary', { name: 'Tour' });
    await tour.getByRole('button', { name: 'Skip tour' }).click();
    expect(await tour.count()).toBe(0);
    await page.reload();
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    expect(await tour.count()).toBe(0);
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Command' }).fill('tour');
    await page.keyboard.press('Enter');
    await tour.getByText('Ask a question here').waitFor();
  });
});
