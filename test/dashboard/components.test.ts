// Shared components in a gallery page, under the content security policy of the dashboard.
import { extname, join } from 'node:path';
import { build, type Rolldown } from 'vite';
import { beforeAll, describe, expect, test } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { serveDashboardFile } from '../../src/server/dashboard-files.ts';
import { browserPath, findViolations, openBrowser } from './support/index.ts';
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

async function openGallery(options: { colorScheme?: 'light' | 'dark' } = {}): Promise<WatchedPage> {
  const context = await (await openBrowser()).newContext({ viewport: { width: 1000, height: 1400 }, ...options });
  await context.route(`${ORIGIN}/**`, async (route) => {
    const path = new URL(route.request().url()).pathname;
    const content = files.get(path === '/' ? '/test/dashboard/gallery/index.html' : path);
    if (content === undefined) return route.fulfill({ status: path === '/favicon.ico' ? 204 : 404 });
    const body = typeof content === 'string' ? new TextEncoder().encode(content) : content;
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
  test('renders few of 10,000 rows, reaches all of them and reports the end', async () => {
    await using opened = await openGallery();
    const { page } = opened;
    const grid = page.getByRole('grid', { name: 'Many rows' });
    await grid.waitFor();
    expect(await grid.getAttribute('aria-rowcount')).toBe('10001');
    const rows = grid.locator('.grid-row');
    const numRendered = async (): Promise<number> => rows.count();
    expect(await numRendered()).toBeLessThan(40);
    expect(await rows.first().innerText()).toContain('<b>row-0</b>');
    for (const position of [0.25, 0.5, 0.99]) {
      await grid.evaluate((element, share) => (element.scrollTop = element.scrollHeight * share), position);
      const expected = Math.floor(10_000 * position);
      await rows.filter({ hasText: `row-${expected}` }).waitFor();
      expect(await numRendered()).toBeLessThan(40);
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

  test('cycles through tabs with the arrow keys', async () => {
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

  test('redraws a chart for new points and a new theme', async () => {
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

  test('expands JSON step by step, as text', async () => {
    await using opened = await openGallery();
    const { page } = opened;
    const json = page.locator('.json');
    expect(await json.innerText()).toContain('<img src=x onerror=alert(1)>');
    await json.getByText('list:').click();
    await expect.poll(() => json.locator('.number').count()).toBe(100);
    await json.getByRole('button', { name: '150 more' }).click();
    await expect.poll(() => json.locator('.number').count()).toBe(250);
  });

  test.each(campaign({ short: ['dark'], long: ['light', 'dark'] } as const))(
    'has no serious accessibility violations: %s',
    async (colorScheme) => {
      await using opened = await openGallery({ colorScheme });
      await opened.page.getByRole('grid').waitFor();
      expect(await findViolations(opened.page)).toEqual([]);
    },
  );
});
