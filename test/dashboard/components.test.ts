// Components that views share, in a page of their own, under the policy of the real one.
import { extname, join } from 'node:path';
import { build, type Rolldown } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serveDashboardFile } from '../../src/server/dashboard-files.ts';
import { browserPath, closeBrowser, findBarriers, openBrowser } from './support/index.ts';
import { watchPage, type WatchedPage } from './support/open-page.ts';

if (browserPath === null) console.log('component tests skipped: they need a Chromium on the PATH');

const root = join(import.meta.dirname, '../..');
const ORIGIN = 'http://gallery.localhost';
const KINDS: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' };
const files = new Map<string, string | Uint8Array>();

beforeAll(async () => {
  if (browserPath === null) return;
  const result = (await build({
    root,
    configFile: false,
    logLevel: 'error',
    publicDir: false,
    build: {
      write: false,
      minify: false,
      cssTarget: 'chrome123',
      rolldownOptions: { input: join(root, 'test/dashboard/gallery/index.html') },
    },
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  })) as { output: (Rolldown.OutputChunk | Rolldown.OutputAsset)[] };
  for (const file of result.output) files.set(`/${file.fileName}`, file.type === 'chunk' ? file.code : file.source);
});
afterAll(closeBrowser);

async function openGallery(options: { colorScheme?: 'light' | 'dark' } = {}): Promise<WatchedPage> {
  const context = await (await openBrowser()).newContext({ viewport: { width: 1000, height: 1400 }, ...options });
  await context.route(`${ORIGIN}/**`, async (route) => {
    const path = new URL(route.request().url()).pathname;
    const found = files.get(path === '/' ? '/test/dashboard/gallery/index.html' : path);
    if (found === undefined) return route.fulfill({ status: path === '/favicon.ico' ? 204 : 404 });
    const body = typeof found === 'string' ? new TextEncoder().encode(found) : found;
    const contentType = KINDS[extname(path) || '.html']!;
    const { headers } = serveDashboardFile(
      { contentType, etag: '"x"', bodies: { identity: body } },
      { path, headers: new Headers() },
    );
    return route.fulfill({ headers: Object.fromEntries(headers), body: Buffer.from(body) });
  });
  return watchPage(context, `${ORIGIN}/`);
}

describe.skipIf(browserPath === null)('shared components', () => {
  test('10 000 rows: few are on the page, all can be reached, and the end is told of', async () => {
    await using opened = await openGallery();
    const { page } = opened;
    const grid = page.getByRole('grid', { name: 'Many rows' });
    await grid.waitFor();
    expect(await grid.getAttribute('aria-rowcount')).toBe('10001');
    const rows = grid.locator('.grid-row');
    const numShown = async (): Promise<number> => rows.count();
    expect(await numShown()).toBeLessThan(40);
    expect(await rows.first().innerText()).toContain('<b>row-0</b>');
    for (const at of [0.25, 0.5, 0.99]) {
      await grid.evaluate((element, share) => (element.scrollTop = element.scrollHeight * share), at);
      const expected = Math.floor(10_000 * at);
      await rows.filter({ hasText: `row-${expected}` }).waitFor();
      expect(await numShown()).toBeLessThan(40);
    }
    expect(await page.locator('#ends').innerText()).toBe('0');
    await grid.focus();
    await page.keyboard.press('End');
    await rows.filter({ hasText: 'row-9999' }).waitFor();
    await expect.poll(() => page.locator('#ends').innerText()).toBe('1');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('#opened').innerText()).toBe('row-9999');
    const active = await grid.getAttribute('aria-activedescendant');
    expect(await page.locator(`[id="${active}"]`).getAttribute('aria-rowindex')).toBe('10001');
    await page.keyboard.press('Home');
    await page.keyboard.press('ArrowDown');
    await rows.filter({ hasText: 'row-1' }).first().waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('#opened').innerText()).toBe('row-1');
  });

  test('tabs go round with the arrow keys', async () => {
    await using opened = await openGallery();
    const { page } = opened;
    await page.getByRole('tab', { name: 'One' }).focus();
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => page.getByRole('tabpanel').innerText()).toBe('panel of three');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => page.getByRole('tabpanel').innerText()).toBe('panel of two');
    expect(await page.evaluate(() => document.activeElement!.textContent)).toBe('Two');
  });

  test('a chart is drawn, takes new points, and has the colours of the theme', async () => {
    await using opened = await openGallery({ colorScheme: 'light' });
    const { page } = opened;
    const canvas = page.getByRole('img', { name: 'Something grows' }).locator('canvas');
    await canvas.waitFor();
    const picture = (): Promise<string> => canvas.evaluate((one) => (one as HTMLCanvasElement).toDataURL());
    const first = await picture();
    await page.evaluate(() => (globalThis as unknown as { addPoint(value: number): void }).addPoint(20));
    await expect.poll(picture).not.toBe(first);
    const second = await picture();
    await page.emulateMedia({ colorScheme: 'dark' });
    await expect.poll(picture).not.toBe(second);
  });

  test('JSON opens step by step, as text', async () => {
    await using opened = await openGallery();
    const { page } = opened;
    const json = page.locator('.json');
    expect(await json.innerText()).toContain('<img src=x onerror=alert(1)>');
    await json.getByText('list:').click();
    await expect.poll(() => json.locator('.number').count()).toBe(100);
    await json.getByRole('button', { name: '150 more' }).click();
    await expect.poll(() => json.locator('.number').count()).toBe(250);
  });

  test.each(['light', 'dark'] as const)('nothing is in the way of anybody: %s', async (colorScheme) => {
    await using opened = await openGallery({ colorScheme });
    await opened.page.getByRole('grid').waitFor();
    expect(await findBarriers(opened.page)).toEqual([]);
  });
});
