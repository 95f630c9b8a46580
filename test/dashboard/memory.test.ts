import { beforeAll, describe, expect, test } from 'vitest';
import { canRun, findViolations, openPage, screensOf, type SharedDashboardServer, sharedTenant } from './support/index.ts'; // prettier-ignore

const TIMEOUT_MS = 600_000;

describe.skipIf(!canRun)('the memory view', () => {
  let server: SharedDashboardServer;
  const key = (name: string): string => server.tokens.get(name)!.token;
  const post = async <T>(path: string, body: unknown): Promise<T> =>
    (await (await server.ask(path, { key: key('writer'), method: 'POST', body })).json()) as T;

  beforeAll(async () => {
    server = await sharedTenant('memory', { reader: ['read-only'], writer: ['inference'] });
    for (const text of ['The lighthouse stands on a cliff.', 'Bread is baked in the morning.'])
      await post('/admin/memory/add', { text });
    for (const content of ['Good morning', 'And now?']) {
      await post('/v1/chat/completions', {
        model: server.model,
        messages: [{ role: 'user', content }],
        max_tokens: 6,
        session: 'kitchen',
      });
    }
  }, TIMEOUT_MS);

  test('adds, counts, finds, opens and deletes a text', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/memory`, { key: key('writer') });
    const { page } = watched;
    await page.getByRole('button', { name: 'Add text' }).click();
    await page.getByLabel('Text', { exact: true }).fill('The harbour freezes in January.');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('button', { name: /^Text 3$/ }).click();
    const rows = page.getByRole('grid', { name: 'Records' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(4);
    await page.getByLabel('Semantic search').fill('the harbour in January');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.getByRole('columnheader', { name: 'Similarity' }).waitFor();
    expect(await rows.nth(1).textContent()).toContain('harbour freezes');
    await rows.nth(1).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('button', { name: /^Text 2$/ }).waitFor();
    const { numRecords } = await post<{ numRecords: Record<string, number> }>('/admin/memory/stats', {});
    expect(numRecords['document']).toBe(2);
  });

  test('draws the links of a record and follows them', { timeout: TIMEOUT_MS }, async () => {
    const ids: string[] = [];
    for (const text of ['The island', 'has a lighthouse', 'and a keeper', 'and a boat']) {
      ids.push((await post<{ id: string }>('/admin/memory/add', { text })).id);
    }
    for (const to of ids.slice(1)) await post('/admin/memory/link', { from: ids[0], to, relation: 'contains' });
    await using watched = await openPage(`${server.url}#/memory/${ids[0]}`, { key: key('reader') });
    const { page } = watched;
    await page.locator('svg.graph').waitFor();
    expect(await page.locator('svg.graph line').count()).toBe(3);
    expect(await page.locator('svg.graph a').count()).toBe(4);
    const places = await page.locator('svg.graph circle').evaluateAll((all) => all.map((one) => `${one.getAttribute('cx')} ${one.getAttribute('cy')}`)); // prettier-ignore
    expect(new Set(places).size).toBe(places.length); // no two nodes overlap
    await page.locator('svg.graph a').last().focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.url()).toMatch(new RegExp(ids.slice(1).join('|')));
  });

  test('takes dropped files, shows their chunks and the requests they answered', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/memory`, { key: key('writer'), expectedStatuses: [400] });
    const { page } = watched;
    await page.getByRole('tab', { name: 'Documents' }).click();
    const text = '# Ferry\n\nThe ferry leaves at seven.\n\n## Tickets\n\nTickets are sold on the quay.';
    const files = await page.evaluateHandle((content) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], 'ferry.md', { type: 'text/markdown' }));
      transfer.items.add(new File([new Uint8Array([1, 0, 2])], 'junk.txt'));
      return transfer;
    }, text);
    // The progress is visible while the second of two files is on its way.
    let release = (): void => {};
    const gate = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/admin/memory/documents?name=junk.txt', async (route) => {
      await gate;
      await route.continue();
    });
    await page.locator('.drop-zone').dispatchEvent('drop', { dataTransfer: files });
    const progress = page.getByRole('progressbar', { name: 'Adding files' });
    await expect.poll(() => progress.evaluate((bar: HTMLProgressElement) => [bar.value, bar.max])).toEqual([1, 2]);
    release();
    await page.getByText('"junk.txt" is not text').waitFor();
    // What was found in the file; a click on a chunk opens the passage.
    const card = page.getByRole('region', { name: 'Found in ferry.md' });
    await card.getByText('2 chunks').waitFor();
    await expect.poll(() => card.getByRole('listitem').count()).toBe(2);
    expect(await card.getByRole('listitem').last().textContent()).toContain('Ferry › Tickets');
    expect(await page.getByRole('region', { name: 'Found in junk.txt' }).count()).toBe(0);
    await card.getByRole('listitem').last().getByRole('link').click();
    await page.getByRole('heading', { name: 'Record' }).waitFor();
    await page.getByLabel('Text', { exact: true }).getByText('Tickets are sold on the quay.').waitFor();
    await page.goBack();
    await post('/v1/chat/completions', {
      model: server.model,
      messages: [{ role: 'user', content: 'When does the ferry leave?' }],
      max_tokens: 2,
      memory: { k: 1, minSimilarity: -1, filter: [{ field: 'source', is: '=', value: 'ferry.md' }] },
    });
    await page.getByRole('grid', { name: 'Documents' }).getByText('ferry.md').click();
    await page.getByRole('heading', { name: 'ferry.md' }).waitFor();
    expect(await page.getByRole('list', { name: 'Chunks' }).locator('> li').count()).toBe(2);
    await expect
      .poll(async () => {
        await page.reload();
        await page.getByRole('list', { name: 'Chunks' }).waitFor();
        return page.getByRole('link', { name: 'When does the ferry leave?' }).count();
      })
      .toBe(1);
    expect(await findViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    const list = async () => (await server.ask('/admin/memory/documents', { key: key('writer') })).json();
    await expect.poll(list).toEqual({ documents: [], next: null });
  });

  test('shows sessions with their turns', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/memory`, { key: key('reader') });
    const { page } = watched;
    await page.getByRole('tab', { name: 'Sessions' }).click();
    await page.getByRole('grid', { name: 'Sessions' }).getByText('kitchen').click();
    await page.getByRole('dialog').getByText('Good morning').waitFor();
    const turns = page.getByRole('dialog').locator('.turns > li');
    expect(await turns.count()).toBe(2);
    // Oldest first, as in the conversation.
    expect(await turns.first().textContent()).toContain('Good morning');
    expect(await turns.last().textContent()).toContain('And now?');
  });

  test('shows a read-only key no button that changes anything', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/memory`, { key: key('reader') });
    const { page } = watched;
    await page.getByRole('grid', { name: 'Records' }).waitFor();
    expect(await page.getByRole('button', { name: 'Add text' }).count()).toBe(0);
    await page.getByRole('button', { name: /^Text/ }).click();
    await page.getByRole('grid', { name: 'Records' }).getByRole('row').nth(1).click();
    await page.getByRole('heading', { name: 'Links' }).waitFor();
    expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0);
  });

  test(
    'has no serious accessibility violations, dark or light, on a desktop or a phone',
    { timeout: TIMEOUT_MS },
    async () => {
      for (const options of screensOf('light phone')) {
        await using watched = await openPage(`${server.url}#/memory`, { key: key('writer'), ...options });
        const { page } = watched;
        await page.getByRole('grid', { name: 'Records' }).waitFor();
        expect(await findViolations(page)).toEqual([]);
        await page.getByRole('grid', { name: 'Records' }).getByRole('row').nth(1).click();
        await page.getByText('Technical details').waitFor();
        expect(await findViolations(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      }
    },
  );
});
