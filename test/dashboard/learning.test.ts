import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isHeldOut } from '../../src/learning/sona/examples.ts';
import { canRun, closeBrowser, type DashboardServer, findBarriers, openPage, startDashboardServer } from './support/index.ts'; // prettier-ignore

const TIMEOUT_MS = 600_000; // a minute of training, many times over
/** To train on and to judge by, no more than may be said in a minute: which is which, the id of a request decides. */
const TAUGHT = { trained: 24, heldOut: 8 };
const NUM_TAUGHT = TAUGHT.trained + TAUGHT.heldOut;

describe.skipIf(!canRun)('the learning view', () => {
  let server: DashboardServer & { tokens: ReadonlyMap<string, { token: string }> };
  const key = (name: string): string => server.tokens.get(name)!.token;
  const post = async <T>(path: string, body: unknown, name = 'admin'): Promise<T> =>
    (await (await server.ask(path, { key: key(name), method: 'POST', body })).json()) as T;

  beforeAll(async () => {
    server = await startDashboardServer({
      keys: [
        { name: 'reader', scopes: ['read-only'] },
        { name: 'admin', scopes: ['admin'] },
      ],
      args: ['--learning-rate', '0.00001'], // single answers teach next to nothing: what is there to learn is left to the loop
    });
    const left = { ...TAUGHT };
    for (let i = 0; left.trained + left.heldOut > 0; i++) {
      const answer = await post<{ id: string }>('/v1/chat/completions', {
        model: server.model,
        messages: [{ role: 'user', content: `What does the cat number ${i} do?` }],
        max_tokens: 8,
      });
      const requestId = answer.id.replace('chatcmpl-', '');
      const use = isHeldOut(requestId) ? 'heldOut' : 'trained';
      if (left[use] === 0) {
        await post('/admin/learning/forget', { requestId });
        continue;
      }
      left[use]--;
      await post('/v1/feedback', { request_id: answer.id, correction: `It sleeps on a blue chair all day.` });
    }
  }, TIMEOUT_MS);
  afterAll(async () => {
    await closeBrowser();
    await server?.[Symbol.asyncDispose]();
  });

  test('a loop is run, its version shown, compared, and taken back', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/learning`, { key: key('admin') });
    const { page } = watched;
    await page.getByText('Judged poor').waitFor();
    await expect.poll(() => page.locator('.tile', { hasText: 'Judged poor' }).locator('dd').first().textContent()).toBe(String(NUM_TAUGHT)); // prettier-ignore
    await page.getByRole('button', { name: 'Run loop B' }).click();
    const row = page.locator('tr[data-version="1"]');
    await row.waitFor({ timeout: TIMEOUT_MS / 2 });
    const { serves, versions } = await post<{ serves: number; versions: { reason: string; isAccepted: boolean }[] }>('/admin/learning/history', {}); // prettier-ignore
    expect(await row.textContent()).toContain(versions[0]!.reason);
    expect(versions[0]!.isAccepted).toBe(true);
    expect(serves).toBe(1);
    await row.getByText('serves').waitFor();
    await page.getByRole('button', { name: 'Back to the file' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Do it' }).click();
    await page.locator('.badge', { hasText: 'as in its file' }).waitFor();
    expect((await post<{ serves: number }>('/admin/learning/history', {})).serves).toBe(0);
    await row.getByRole('button', { name: 'Let it serve' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Do it' }).click();
    await page.getByText('version 1 serves').waitFor();
    await page.getByRole('tab', { name: 'Curves' }).click();
    await page.getByRole('img', { name: /^Held-out loss of / }).waitFor();
    await page.getByRole('img', { name: /judged good, poor/ }).waitFor();
    await page.getByRole('tab', { name: 'Router' }).click();
    await page.getByText('No router runs').waitFor();
  });

  test('a key that only looks may not run or undo anything', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/learning`, { key: key('reader') });
    const { page } = watched;
    await page.getByRole('heading', { name: server.model }).waitFor();
    expect(await page.getByRole('button', { name: /loop|serve|file/ }).count()).toBe(0);
  });

  test('has no serious barrier, dark and light, on a desk and a phone', { timeout: TIMEOUT_MS }, async () => {
    for (const options of [
      { colorScheme: 'light' },
      { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
    ] as const) {
      await using watched = await openPage(`${server.url}#/learning`, { key: key('admin'), ...options });
      const { page } = watched;
      await page.getByRole('heading', { name: server.model }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.getByRole('tab', { name: 'Curves' }).click();
      await page.getByRole('img', { name: /judged good, poor/ }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    }
  });
});
