import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { canRun, type DashboardServer, findViolations, openPage, screensOf, startDashboardServer } from './support/index.ts'; // prettier-ignore

const TIMEOUT_MS = 600_000;
const NUM_ROWS = campaign({ short: 1500, long: 10_000 });
const HOSTILE =
  '<img src=x onerror="document.title=1"> [click](javascript:document.title=2) \u001b[31mred \u202Egnirts';

describe.skipIf(!canRun)('the audit log view', () => {
  let server: DashboardServer & { tokens: ReadonlyMap<string, { token: string }> };
  const ids: string[] = [];
  const key = (name = 'reader'): string => server.tokens.get(name)!.token;

  beforeAll(async () => {
    server = await startDashboardServer({
      keys: [
        { name: 'reader', scopes: ['read-only'] },
        { name: 'writer', scopes: ['inference'] },
      ],
    });
    for (const content of [
      'The zebra crossed the river at noon.',
      'Tell me of a dragon.',
      'Tell me of another dragon.',
      HOSTILE,
    ]) {
      const answer = await server.ask('/v1/chat/completions', {
        key: key('writer'),
        method: 'POST',
        body: { model: server.model, messages: [{ role: 'user', content }], max_tokens: 12, temperature: 0 },
      });
      ids.push(((await answer.json()) as { id: string }).id.replace('chatcmpl-', ''));
    }
    // Audit entries are written shortly after the answer.
    await vi.waitFor(async () => expect(await numEntries()).toBe(ids.length), { timeout: 300_000, interval: 100 });
  }, TIMEOUT_MS);
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  async function numEntries(): Promise<number> {
    const response = await server.ask('/admin/memory/audit/search', { key: key(), method: 'POST', body: {} });
    return ((await response.json()) as { entries: unknown[] }).entries.length;
  }

  test('finds a request by text and by similarity, and opens it', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/audit`, { key: key() });
    const { page } = watched;
    const rows = page.getByRole('grid', { name: 'Requests' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(ids.length + 1);
    await page.getByLabel('Contains text').fill('zebra');
    await page.getByRole('button', { name: 'Search' }).click();
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('Similar to').fill('the zebra and the river');
    await page.keyboard.press('Enter');
    await page.getByRole('columnheader', { name: 'Similarity' }).waitFor();
    expect(await rows.nth(1).textContent()).toContain('zebra');
    await rows.nth(1).click();
    await page.getByRole('heading', { name: 'Latency breakdown' }).waitFor();
    expect(page.url()).toContain(`#/audit/${ids[0]}`);
    expect(await page.getByLabel('Prompt', { exact: true }).last().textContent()).toBe('The zebra crossed the river at noon.'); // prettier-ignore
  });

  test('draws the spans of the entry as a waterfall and lists similar requests', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/audit/${ids[1]}`, { key: key() });
    const { page } = watched;
    await page.locator('.waterfall tr').first().waitFor();
    const response = await server.ask('/admin/memory/audit/show', {
      key: key(),
      method: 'POST',
      body: { requestId: ids[1] },
    });
    const { spans } = (await response.json()) as { spans: { startMs: number; durationMs: number }[] };
    expect(spans.length).toBeGreaterThan(1);
    expect(await page.locator('.waterfall tr').count()).toBe(spans.length);
    const lanes = await page.evaluate(() =>
      [...document.querySelectorAll('.waterfall .lane')].map((lane) => {
        const [whole, bar] = [lane.getBoundingClientRect(), lane.firstElementChild!.getBoundingClientRect()];
        return { left: (bar.left - whole.left) / whole.width, width: bar.width / whole.width };
      }),
    );
    const end = Math.max(...spans.map(({ startMs, durationMs }) => startMs + durationMs));
    spans.forEach(({ startMs }, i) => expect(lanes[i]!.left).toBeCloseTo(startMs / end, 1));
    const similar = page.getByRole('grid', { name: 'Similar requests' }).getByRole('row');
    expect(await similar.nth(1).textContent()).toContain('another dragon');
    await similar.nth(1).click();
    await expect.poll(() => page.url()).toContain(ids[2]);
  });

  test('verifies the hash chain on the server', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/audit`, { key: key() });
    await watched.page.getByRole('button', { name: 'Verify hash chain' }).click();
    await watched.page.getByText(`Intact: ${ids.length} entries`).waitFor();
  });

  test('shows hostile text as plain text', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/audit/${ids[3]}`, { key: key() });
    const { page } = watched;
    const prompt = page.getByLabel('Prompt', { exact: true }).last();
    await prompt.waitFor();
    const text = (await prompt.textContent())!;
    expect(text).toContain('<img src=x onerror=');
    for (const character of ['\u001b', '\u202e']) expect(text).not.toContain(character);
    expect(await page.locator('main img').count()).toBe(0);
    expect(await page.locator('a[href^="javascript:"]').count()).toBe(0);
    expect(await page.title()).toContain('RuvLLM');
  });

  test('scrolls through thousands of requests and renders only the visible ones', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(server.url, { key: key() });
    const { page } = watched;
    // Repeats one real entry: this tests the page, not the audit log.
    const response = await server.ask('/admin/memory/audit/search', { key: key(), method: 'POST', body: { limit: 1 } });
    const { entries } = (await response.json()) as { entries: { entry: object }[] };
    await page.route('**/admin/memory/audit/search', async (route) => {
      const { after = '0', limit } = route.request().postDataJSON() as { after?: string; limit: number };
      const from = Number(after);
      const next = from + limit < NUM_ROWS ? String(from + limit) : null;
      const copies = Array.from({ length: Math.min(limit, NUM_ROWS - from) }, (_, i) => ({
        ...entries[0],
        id: `row ${from + i}`,
        entry: { ...entries[0]!.entry, query: `question ${from + i}` },
      }));
      await route.fulfill({ json: { entries: copies, next, isComplete: true, numScanned: limit } });
    });
    await page.goto(`${server.url}#/audit`);
    const grid = page.getByRole('grid', { name: 'Requests' });
    await grid.waitFor();
    for (;;) {
      await grid.evaluate((one) => (one.scrollTop = one.scrollHeight));
      if (Number(await grid.getAttribute('aria-rowcount')) === NUM_ROWS + 1) break;
      await page.waitForTimeout(10);
    }
    await grid.evaluate((one) => (one.scrollTop = one.scrollHeight)); // the last page may have arrived after the last scroll
    await page.getByText(`question ${NUM_ROWS - 1}`, { exact: true }).waitFor();
    expect(await grid.getByRole('row').count()).toBeLessThan(60);
    // Scrolls back to the top with the keyboard.
    await grid.focus();
    await page.keyboard.press('Home');
    await page.getByText('question 0', { exact: true }).waitFor();
  });

  test(
    'has no serious accessibility violations, dark or light, on a desktop or a phone',
    { timeout: TIMEOUT_MS },
    async () => {
      for (const options of screensOf('dark phone')) {
        for (const [path, gridName] of [
          ['audit', 'Requests'],
          [`audit/${ids[1]}`, 'Similar requests'],
        ] as const) {
          await using watched = await openPage(`${server.url}#/${path}`, { key: key(), ...options });
          const { page } = watched;
          await page.getByRole('grid', { name: gridName }).waitFor();
          expect(await findViolations(page)).toEqual([]);
          expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
        }
      }
    },
  );
});
