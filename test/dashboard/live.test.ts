import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { canRun, type DashboardServer, findViolations, openPage, screensOf, startDashboardServer } from './support/index.ts'; // prettier-ignore

const TIMEOUT_MS = 600_000;
const NUM_STREAMS = 64;

describe.skipIf(!canRun)('the live view', () => {
  let server: DashboardServer;
  const keyOf = (name: string): string => server.tokens.get(name)!.token;
  const ask = (content: string, more: Record<string, unknown> = {}) =>
    server.ask('/v1/chat/completions', {
      key: keyOf('writer'),
      method: 'POST',
      body: { model: server.model, messages: [{ role: 'user', content }], max_tokens: 8, ...more },
    });

  beforeAll(async () => {
    server = await startDashboardServer({
      keys: {
        admin: ['admin'],
        writer: ['inference'],
        reader: ['read-only'],
      },
      hasEndless: true,
    });
    const long = 'Once upon a time there was a little girl who lived by the sea. '.repeat(6);
    for (const end of ['She had a red boat.', 'She had a red boat.', 'She had a blue kite.']) {
      expect((await ask(long + end)).status).toBe(200);
    }
  }, TIMEOUT_MS);
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  async function metric(name: string): Promise<number> {
    const text = await (await server.ask('/metrics', { key: keyOf('admin') })).text();
    const line = text.split('\n').find((one) => one.startsWith(`${name}{`))!;
    return Number(line.slice(line.lastIndexOf(' ') + 1));
  }

  test('draws the page pool and its budget with the values of /metrics', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/live`, { key: keyOf('admin') });
    const { page } = watched;
    const figure = (name: string) => page.locator(`data[data-figure=${name}]`).getAttribute('value').then(Number);
    await page.locator('data[data-figure=budget]').waitFor();
    expect(await figure('budget')).toBe(await metric('ruvllm_pool_budget_bytes'));
    // Idle pages are packed in the background, so one of the two values may be older.
    await expect.poll(async () => (await figure('used')) - (await metric('ruvllm_pool_bytes'))).toBe(0);
    expect(await figure('used')).toBeGreaterThan(0);
    const [used, ...tiers] = await page.locator('data[data-figure=used], data[data-tier]:not([data-tier=disk])').evaluateAll((all) => all.map((one) => Number((one as HTMLDataElement).value))); // prettier-ignore
    expect(tiers.reduce((sum, bytes) => sum + bytes, 0)).toBe(used);
    // The drawn tiers match the numbers, and the budget line is at its position.
    const [bar, line, ...parts] = await page.evaluate(() => {
      const box = (selector: string) =>
        [...document.querySelectorAll(selector)].map((one) => one.getBoundingClientRect());
      return [...box('.pool-bar'), ...box('.pool-budget'), ...box('.pool-bar span')].map(({ left, width }) => ({ left, width })); // prettier-ignore
    });
    const usedShare = parts.reduce((sum, { width }) => sum + width, 0) / (bar!.width - 2);
    expect(usedShare).toBeCloseTo((await figure('used')) / (await figure('budget')), 2);
    expect((line!.left - bar!.left) / bar!.width).toBeGreaterThan(0.97);
  });

  test('shows shared prefixes in a tree that can be navigated and zoomed', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/live`, { key: keyOf('admin') });
    const { page } = watched;
    const items = page.getByRole('treeitem');
    await items.first().waitFor();
    const numBefore = await items.count();
    expect(numBefore).toBeGreaterThan(1); // one shared prefix with two branches
    expect(await items.first().getAttribute('aria-label')).toMatch(/ \d+ tokens, .*, [1-9]\d* hits?, 2 branches$/);
    await expect.poll(() => page.locator('.prefix-text').textContent()).toContain('Once upon a time');
    await items.first().focus();
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => page.locator('[role=treeitem][aria-selected=true]').getAttribute('aria-level')).toBe('2');
    await page.keyboard.press('Enter');
    await expect.poll(() => items.count()).toBeLessThan(numBefore);
    expect(await items.first().evaluate((one) => [one.style.left, one.style.height])).toEqual(['0%', '100%']);
    await page.keyboard.press('Escape');
    await expect.poll(() => items.count()).toBe(numBefore);
  });

  test('counts and lists many concurrent streams', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/live`, { key: keyOf('admin') });
    const { page } = watched;
    await page.getByText('No running requests').waitFor();
    const abort = new AbortController();
    const ask = (i: number): Promise<Response> =>
      fetch(`${server.url}v1/chat/completions`, {
        method: 'POST',
        signal: abort.signal,
        headers: { authorization: `Bearer ${keyOf('writer')}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: server.model,
          messages: [{ role: 'user', content: `Story ${i}:` }],
          max_tokens: 200,
          ignore_eos: true,
          stream: true,
        }),
      });
    // Restarts each stream when it ends: a fast machine would finish the first before the last is listed.
    const streams = Array.from({ length: NUM_STREAMS }, async (_, i) => {
      for (;;) await (await ask(i)).text();
    });
    const grid = page.getByRole('grid', { name: 'Running and queued requests' });
    await expect.poll(() => grid.getAttribute('aria-rowcount')).toBe(String(NUM_STREAMS + 1));
    expect(await grid.getByText('generating', { exact: true }).count()).toBeGreaterThan(0);
    // Eight of them run at once, the others wait.
    const alert = page.locator('[data-alert=queue_length]');
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/^Long queue\. \d\d requests are queued \(alert from 16\)\.$/);
    expect(await grid.getByRole('row').count()).toBeLessThan(NUM_STREAMS / 2); // only visible rows are rendered
    // Measures the longest task while the numbers change.
    const longest = await page.evaluate(
      (observedMs) =>
        new Promise<number>((resolve) => {
          let worst = 0;
          const observer = new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries()) worst = Math.max(worst, duration);
          });
          observer.observe({ type: 'longtask' });
          setTimeout(() => resolve(worst), observedMs);
        }),
      campaign({ short: 300, long: 3000 }),
    );
    console.log(`${NUM_STREAMS} streams: longest task of the page ${longest} ms`);
    abort.abort();
    for (const one of await Promise.allSettled(streams)) expect(one).toMatchObject({ reason: { name: 'AbortError' } });
    await page.getByText('No running requests').waitFor();
    await expect.poll(() => alert.count()).toBe(0);
  });

  test('shows the time before the page was opened, also after a reload', { timeout: TIMEOUT_MS }, async () => {
    const readHistory = async () =>
      (await (await server.ask('/admin/live/history', { key: keyOf('reader') })).json()) as { at: number[] };
    await expect.poll(async () => (await readHistory()).at.length, { timeout: 60_000 }).toBeGreaterThan(1);
    await using watched = await openPage(`${server.url}#/live`, { key: keyOf('reader') });
    const { page } = watched;
    const since = page.locator('data[data-figure=since]');
    const firstMs = async () => Number(await since.getAttribute('value')) * 1000;
    await page.getByRole('button', { name: '1 h' }).click();
    const { at } = await readHistory();
    await expect.poll(firstMs).toBe(at[0]);
    await page.reload();
    await page.getByRole('button', { name: '1 h' }).click();
    await expect.poll(firstMs).toBe(at[0]);
    await page.getByRole('button', { name: '5 min' }).click();
    await expect.poll(firstMs).toBeGreaterThan(Date.now() - 310_000);
    for (const name of [/tokens per second/, /batch and in the queue/, /share of the budget/, /failed requests/]) {
      await page.getByRole('img', { name }).waitFor();
    }
  });

  test('filters by model, tenant and state', { timeout: TIMEOUT_MS }, async () => {
    const guest = await server.createKey('guest', 'guests', ['inference']);
    await using watched = await openPage(`${server.url}#/live`, { key: keyOf('admin') });
    const { page } = watched;
    const abort = new AbortController();
    const follow = async (token: string): Promise<void> => {
      const response = await fetch(`${server.url}v1/chat/completions`, {
        method: 'POST',
        signal: abort.signal,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'endless', messages: [{ role: 'user', content: 'Once' }], max_tokens: 3500, ignore_eos: true, stream: true }), // prettier-ignore
      });
      await response.text();
    };
    const streams = [follow(keyOf('writer')), follow(keyOf('writer')), follow(guest.token)];
    const grid = page.getByRole('grid', { name: 'Running and queued requests' });
    const rows = () => grid.getAttribute('aria-rowcount').then(Number);
    await expect.poll(rows).toBe(streams.length + 1);
    const filters = page.getByRole('group', { name: 'Filters' });
    await filters.getByLabel('Tenant').selectOption('guests');
    await expect.poll(rows).toBe(2);
    await filters.getByLabel('Tenant').selectOption('');
    await filters.getByLabel('State').selectOption('generating');
    await expect.poll(rows).toBe(streams.length + 1);
    await filters.getByLabel('State').selectOption('loading');
    await page.getByText('No running requests match these filters').waitFor();
    await filters.getByLabel('State').selectOption('');
    await filters.getByLabel('Model').selectOption(server.model);
    await page.getByText('No running requests match these filters').waitFor();
    const batch = page.locator('.tile', { hasText: 'Batch size' }).locator('dd').first();
    await expect.poll(() => batch.textContent()).toBe('0');
    await filters.getByLabel('Model').selectOption('endless');
    await expect.poll(() => batch.textContent()).toBe(String(streams.length));
    await expect.poll(rows).toBe(streams.length + 1);
    abort.abort();
    for (const one of await Promise.allSettled(streams)) expect(one).toMatchObject({ reason: { name: 'AbortError' } });
    // Other keys see only their own tenant, so that there is nothing to choose.
    await using reader = await openPage(`${server.url}#/live`, { key: keyOf('reader') });
    await reader.page.getByRole('group', { name: 'Filters' }).waitFor();
    expect(await reader.page.getByRole('group', { name: 'Filters' }).getByLabel('Tenant').count()).toBe(0);
  });

  test(
    'has no serious accessibility violations, dark or light, on a desktop or a phone',
    { timeout: TIMEOUT_MS },
    async () => {
      for (const options of screensOf('light desktop')) {
        await using watched = await openPage(`${server.url}#/live`, { key: keyOf('admin'), ...options });
        const { page } = watched;
        await page.getByRole('treeitem').first().waitFor();
        expect(await findViolations(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      }
    },
  );

  test('is hidden from a key with only the inference scope', { timeout: TIMEOUT_MS }, async () => {
    await using reader = await openPage(server.url, { key: keyOf('reader') });
    await reader.page.getByRole('link', { name: 'Live' }).waitFor();
    await using writer = await openPage(server.url, { key: keyOf('writer') });
    await writer.page.getByRole('link', { name: 'Chat' }).waitFor();
    expect(await writer.page.getByRole('link', { name: 'Live' }).count()).toBe(0);
  });
});
