import { beforeAll, describe, expect, test, vi } from 'vitest';
import { campaign } from '../support/campaign.ts';
import { canRun, findViolations, openPage, screensOf, scrollFrameMs, type SharedDashboardServer, sharedTenant } from './support/index.ts'; // prettier-ignore

const TIMEOUT_MS = 600_000;
/** Many pages of them. */
const NUM_ROWS = campaign({ short: 2000, long: 10_000 });
const HOSTILE =
  '<img src=x onerror="document.title=1"> [click](javascript:document.title=2) \u001b[31mred \u202Egnirts';

describe.skipIf(!canRun)('the audit log view', () => {
  let server: SharedDashboardServer;
  const ids: string[] = [];
  const key = (name = 'reader'): string => server.tokens.get(name)!.token;

  beforeAll(async () => {
    server = await sharedTenant('zookeepers', { reader: ['read-only'], writer: ['inference'] });
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

  test('shows ratings and quality in the list', { timeout: TIMEOUT_MS }, async () => {
    const rate = (requestId: string, score: number) =>
      server.ask('/v1/feedback', { key: key('writer'), method: 'POST', body: { request_id: requestId, score } });
    expect((await rate(ids[0]!, 1)).status).toBe(200);
    expect((await rate(ids[1]!, 0.1)).status).toBe(200);
    await using watched = await openPage(`${server.url}#/audit`, { key: key() });
    const { page } = watched;
    const grid = page.getByRole('grid', { name: 'Requests' });
    await grid.getByRole('row').filter({ hasText: 'zebra' }).waitFor(); // the lists below do not wait
    const heads = await grid.getByRole('columnheader').allTextContents();
    const cellsOf = (prompt: string) => grid.getByRole('row').filter({ hasText: prompt }).getByRole('gridcell').allTextContents(); // prettier-ignore
    const [rating, quality] = [heads.indexOf('Rating'), heads.indexOf('Quality')];
    expect([rating, quality].every((index) => index > 0)).toBe(true);
    const good = await cellsOf('zebra');
    expect([good[rating], good[quality]]).toEqual(['good', '1']);
    const bad = await cellsOf('Tell me of a dragon');
    expect([bad[rating], bad[quality]]).toEqual(['bad', '0.1']);
    const unrated = await cellsOf('another dragon');
    expect([unrated[rating], unrated[quality]]).toEqual(['–', '–']);
  });

  test('compares two requests side by side and marks what differs', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/audit`, { key: key() });
    const { page } = watched;
    const select = (prompt: string) => page.getByRole('checkbox', { name: `Select for comparison: ${prompt}` });
    await select('The zebra crossed the river at noon.').check();
    await page.getByText('Select a second request to compare.').waitFor();
    await select('Tell me of a dragon.').check();
    // Selecting does not open a request, and a third one replaces the first.
    await select('Tell me of another dragon.').check();
    expect(await select('The zebra crossed the river at noon.').isChecked()).toBe(false);
    await page.getByRole('link', { name: 'Compare the two selected requests' }).click();
    await page.getByRole('heading', { name: 'Compare requests' }).waitFor();
    expect(page.url()).toContain(`#/audit/compare/${ids[1]}/${ids[2]}`);
    const table = page.getByRole('region', { name: 'Compare requests' });
    const row = (name: string) => table.getByRole('row').filter({ has: page.getByRole('rowheader', { name, exact: true }) }); // prettier-ignore
    await row('Temperature').waitFor();
    expect(await row('Temperature').getByRole('cell').allTextContents()).toEqual(['0', '0']);
    expect(await row('Generated tokens').getByRole('cell').allTextContents()).toEqual(['12', '12']);
    expect(await row('Model').getAttribute('data-differs')).toBeNull();
    expect(await row('Total time').getAttribute('data-differs')).toBe('');
    const prompts = page.getByRole('region', { name: 'Prompt', exact: true });
    expect(await prompts.locator('del').allTextContents()).toEqual(['a ']);
    expect(await prompts.locator('ins').allTextContents()).toEqual(['another ']);
    expect(await findViolations(page)).toEqual([]);
    await table.getByRole('link', { name: 'B' }).click();
    await expect.poll(() => page.url()).toContain(`#/audit/${ids[2]}`);
  });

  test(
    'has a link that works for the keys of its tenant and shows others nothing',
    { timeout: TIMEOUT_MS },
    async () => {
      await using watched = await openPage(`${server.url}#/audit/${ids[0]}`, {
        key: key(),
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      await watched.page.getByRole('button', { name: 'Copy link to this request' }).click();
      await watched.page.getByRole('button', { name: 'Copied' }).waitFor();
      const link = await watched.page.evaluate(() => navigator.clipboard.readText());
      expect(link).toBe(`${server.url}#/audit/${ids[0]}`);
      expect(link).not.toContain(key());
      // Without a key: sign in first, then the entry.
      await using colleague = await openPage(link);
      await colleague.page.getByLabel('API key').fill(key('writer'));
      await colleague.page.keyboard.press('Enter');
      await colleague.page.getByText('The zebra crossed the river at noon.').first().waitFor();
      // With a key of another tenant, also an administrator's, a request of the first tenant and an unknown one look the same.
      const stranger = await server.createKey('stranger', 'elsewhere', ['admin']);
      const notices: string[] = [];
      for (const id of [ids[0]!, '0199a0b4-7c00-7000-8000-000000000001', 'nonsense']) {
        await using outsider = await openPage(`${server.url}#/audit/${id}`, {
          key: stranger.token,
          expectedStatuses: [400, 404],
        });
        const notice = outsider.page.getByText('it belongs to another tenant');
        await notice.waitFor();
        notices.push((await outsider.page.locator('main').textContent())!.replace(id, ''));
        expect(notices.at(-1)).toContain('signed in for the tenant elsewhere');
        expect(notices.at(-1)).not.toMatch(/zebra|zookeepers/);
      }
      expect(new Set(notices).size).toBe(1);
    },
  );

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
    const frameMs = await scrollFrameMs(page, '[role=grid][aria-label=Requests]', 100);
    console.log(`${NUM_ROWS} rows: ${frameMs.toFixed(1)} ms of processor per frame while scrolling`);
    expect(frameMs).toBeLessThanOrEqual(20);
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
