import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isHeldOut } from '../../src/learning/sona/examples.ts';
import { canRun, type DashboardServer, findViolations, openPage, screensOf, startDashboardServer } from './support/index.ts'; // prettier-ignore

const TIMEOUT_MS = 600_000; // a minute of training, many times over
/** Corrections for training and for the held-out test, below the rate limit of a minute. The request id decides the set. */
const NUM_CORRECTIONS = { trained: 24, heldOut: 8 };
const TOTAL_CORRECTIONS = NUM_CORRECTIONS.trained + NUM_CORRECTIONS.heldOut;

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
      args: ['--learning-rate', '0.00001'], // weakens the instant loop, so that the background loop has something to learn
    });
    const remaining = { ...NUM_CORRECTIONS };
    for (let i = 0; remaining.trained + remaining.heldOut > 0; i++) {
      const answer = await post<{ id: string }>('/v1/chat/completions', {
        model: server.model,
        messages: [{ role: 'user', content: `What does the cat number ${i} do?` }],
        max_tokens: 8,
      });
      const requestId = answer.id.replace('chatcmpl-', '');
      const use = isHeldOut(requestId) ? 'heldOut' : 'trained';
      if (remaining[use] === 0) {
        await post('/admin/learning/forget', { requestId });
        continue;
      }
      remaining[use]--;
      await post('/v1/feedback', { request_id: answer.id, correction: `It sleeps on a blue chair all day.` });
    }
  }, TIMEOUT_MS);
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  test('runs a loop, shows its version, reverts it and activates it again', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/learning`, { key: key('admin') });
    const { page } = watched;
    await page.getByText('Rated bad').waitFor();
    await expect.poll(() => page.locator('.tile', { hasText: 'Rated bad' }).locator('dd').first().textContent()).toBe(String(TOTAL_CORRECTIONS)); // prettier-ignore
    await page.getByRole('button', { name: 'Run background loop' }).click();
    const row = page.locator('tr[data-version="1"]');
    await row.waitFor({ timeout: TIMEOUT_MS / 2 });
    const { serves, versions } = await post<{ serves: number; versions: { reason: string; isAccepted: boolean }[] }>('/admin/learning/history', {}); // prettier-ignore
    expect(await row.textContent()).toContain(versions[0]!.reason);
    expect(versions[0]!.isAccepted).toBe(true);
    expect(serves).toBe(1);
    await row.getByText('active', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Revert to base model' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revert' }).click();
    await page.locator('.badge', { hasText: 'base model' }).waitFor();
    expect((await post<{ serves: number }>('/admin/learning/history', {})).serves).toBe(0);
    await row.getByRole('button', { name: 'Activate' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Activate' }).click();
    await page.getByText('version 1 active').waitFor();
    await page.getByRole('tab', { name: 'Curves' }).click();
    await page.getByRole('img', { name: /^Held-out loss of / }).waitFor();
    await page.getByRole('img', { name: /rated good, rated bad/ }).waitFor();
    await page.getByRole('tab', { name: 'Router' }).click();
    await page.getByText('The router is off').waitFor();
  });

  test('shows a read-only key no button that runs a loop or switches versions', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/learning`, { key: key('reader') });
    const { page } = watched;
    await page.getByRole('heading', { name: server.model }).waitFor();
    expect(await page.getByRole('button', { name: /loop|activate|revert/i }).count()).toBe(0);
  });

  test(
    'has no serious accessibility violations, dark or light, on a desktop or a phone',
    { timeout: TIMEOUT_MS },
    async () => {
      for (const options of screensOf('dark desktop')) {
        await using watched = await openPage(`${server.url}#/learning`, { key: key('admin'), ...options });
        const { page } = watched;
        await page.getByRole('heading', { name: server.model }).waitFor();
        expect(await findViolations(page)).toEqual([]);
        await page.getByRole('tab', { name: 'Curves' }).click();
        await page.getByRole('img', { name: /rated good, rated bad/ }).waitFor();
        expect(await findViolations(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      }
    },
  );
});
