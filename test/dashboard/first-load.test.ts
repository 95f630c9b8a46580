import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { canRun, type DashboardServer, openPage, sharedDashboardServer } from './support/index.ts';

let server: DashboardServer;
beforeAll(async () => {
  if (canRun) server = await sharedDashboardServer('bare');
});

/** Limit for all files loaded before the chat is usable. */
const MAX_BYTES = 150_000;

describe.skipIf(!canRun)('first load', () => {
  test('loads at most 150 kB gzip before the chat is usable, and only the page on a second visit', async () => {
    await using opened = await openPage(server.url, { isFresh: true });
    const { page, requests } = opened;
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    const paths = [...new Set(requests.map((url) => new URL(url).pathname))];
    const files = paths.filter((path) => path === '/' || path.startsWith('/assets/'));
    const sizes = await Promise.all(
      files.map(async (path) => {
        const response = await server.ask(path);
        return gzipSync(new Uint8Array(await response.arrayBuffer()), { level: 9 }).length;
      }),
    );
    const total = sizes.reduce((sum, size) => sum + size, 0);
    console.log(`first load: ${files.length} files, ${(total / 1000).toFixed(1)} kB gzip`);
    expect(files.length).toBeGreaterThan(3);
    expect(total).toBeLessThanOrEqual(MAX_BYTES);
    await page.goto(`${server.url}?again`);
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    const loadedAgain = await page.evaluate(() =>
      (performance.getEntriesByType('resource') as PerformanceResourceTiming[])
        .filter(({ name, transferSize }) => name.includes('/assets/') && transferSize > 0)
        .map(({ name }) => name),
    );
    expect(loadedAgain).toEqual([]);
    // Dependencies of other views are loaded on demand.
    expect(files.filter((path) => /uplot|line-chart/i.test(path))).toEqual([]);
  });

  test('serves compressed files', async () => {
    const page = await (await server.ask('/')).text();
    const [, script] = /src="(\/assets\/[^"]+\.js)"/.exec(page)!;
    const response = await server.ask(script!);
    expect(response.headers.get('content-encoding')).toMatch(/^(?:br|gzip)$/);
  });
});
