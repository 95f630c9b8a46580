import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isHeldOut } from '../../src/learning/sona/examples.ts';
import { canRun, type DashboardServer, findViolations, openPage, screensOf, startDashboardServer } from './support/index.ts'; // prettier-ignore

const TIMEOUT_MS = 600_000; // a minute of training, many times over
/** Corrections for training and for the held-out test, below the rate limit of a minute. The request id decides the set. */
const NUM_CORRECTIONS = { trained: 24, heldOut: 8 };
const TOTAL_CORRECTIONS = NUM_CORRECTIONS.trained + NUM_CORRECTIONS.heldOut;

describe.skipIf(!canRun)('the learning view', () => {
  let server: DashboardServer;
  const key = (name: string): string => server.tokens.get(name)!.token;
  const post = async <T>(path: string, body: unknown, name = 'admin'): Promise<T> =>
    (await (await server.ask(path, { key: key(name), method: 'POST', body })).json()) as T;

  beforeAll(async () => {
    server = await startDashboardServer({
      keys: {
        reader: ['read-only'],
        admin: ['admin'],
      },
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

  test(
    'shows what was learned from an answer, links its audit entry, and undoes it',
    { timeout: TIMEOUT_MS },
    async () => {
      const answer = await post<{ id: string }>('/v1/chat/completions', {
        model: server.model,
        messages: [{ role: 'user', content: 'Where does the zebra live?' }],
        max_tokens: 4,
      });
      const requestId = answer.id.replace('chatcmpl-', '');
      await post('/v1/feedback', { request_id: requestId, correction: 'The zebra lives in the attic.' });
      await using watched = await openPage(`${server.url}#/learning`, { key: key('admin') });
      const { page } = watched;
      const lesson = page.locator(`.lessons > li[data-request="${requestId}"]`);
      await lesson.getByText('The zebra lives in the attic.').waitFor();
      await lesson.getByText('Similar questions of the same user get this correction in their prompt.').waitFor();
      // No ids, loops or server messages outside the disclosure.
      expect(await lesson.getByText(requestId).isVisible()).toBe(false);
      await lesson.getByText('Technical details').click();
      expect(await lesson.getByText(requestId).isVisible()).toBe(true);
      expect(await lesson.getByRole('link', { name: 'Audit entry' }).getAttribute('href')).toBe(`#/audit/${requestId}`);
      expect(await findViolations(page)).toEqual([]);
      await lesson.getByRole('button', { name: 'Undo what was learned from: Where does the zebra live?' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Undo' }).click();
      await expect.poll(() => lesson.count()).toBe(0);
      const { lessons } = await post<{ lessons: { requestId: string }[] }>('/admin/learning/lessons', { limit: 500 });
      expect(lessons).toHaveLength(TOTAL_CORRECTIONS);
      await lesson.page().goto(`${server.url}#/audit/${requestId}`);
      await page.getByText('Where does the zebra live?').first().waitFor(); // the audit entry stays
    },
  );

  test('runs a loop, shows its version, reverts it and activates it again', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/learning`, { key: key('admin') });
    const { page } = watched;
    await page.getByText('Rated bad').waitFor();
    await expect.poll(() => page.locator('.tile', { hasText: 'Rated bad' }).locator('dd').first().textContent()).toBe(String(TOTAL_CORRECTIONS)); // prettier-ignore
    await page.getByRole('tab', { name: 'Versions' }).click();
    const row = page.locator('tr[data-version="1"]');
    const train = page.getByRole('button', { name: 'Train now' });
    await train.click();
    // On a slow machine a run ends before it has examined all answers; the next one continues.
    await expect
      .poll(
        async () => {
          if ((await row.count()) === 0 && (await train.isVisible())) await train.click();
          return row.count();
        },
        { timeout: TIMEOUT_MS / 2, interval: 3000 },
      )
      .toBe(1);
    const { serves, versions } = await post<{ serves: number; versions: { reason: string; isAccepted: boolean; numLearnedFrom: number }[] }>('/admin/learning/history', {}); // prettier-ignore
    expect(versions[0]!.isAccepted).toBe(true);
    expect(serves).toBe(1);
    await row.getByText('in use', { exact: true }).waitFor();
    // In words; the server's reason is one click away.
    expect(await row.textContent()).toMatch(/Error [\d.]+ % lower on \d+ answers it had not seen/);
    expect(await row.getByText(versions[0]!.reason).isVisible()).toBe(false);
    await row.getByText('Technical details').click();
    expect(await row.getByText(versions[0]!.reason).isVisible()).toBe(true);
    await row.getByRole('button', { name: /^\d+ answers that version 1 was trained on$/ }).click();
    const answers = page.getByRole('dialog').locator('.lessons > li');
    await expect.poll(() => answers.count()).toBe(versions[0]!.numLearnedFrom);
    expect(await answers.first().textContent()).toContain('It sleeps on a blue chair all day.');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Revert to base model' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revert' }).click();
    await page.locator('.badge', { hasText: 'base model' }).waitFor();
    expect((await post<{ serves: number }>('/admin/learning/history', {})).serves).toBe(0);
    await row.getByRole('button', { name: 'Use version 1' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Use this version' }).click();
    await page.getByText('version 1 in use').waitFor();
    await row.getByRole('button', { name: 'Undo version 1' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revert' }).click();
    await page.locator('.badge', { hasText: 'base model' }).waitFor();
    await page.getByRole('tab', { name: 'Charts' }).click();
    await page.getByRole('img', { name: /^Held-out loss of / }).waitFor();
    await page.getByRole('img', { name: /rated good, rated bad/ }).waitFor();
    await page.getByRole('tab', { name: 'Router' }).click();
    await page.getByText('The router is off').waitFor();
  });

  test('shows a read-only key no button that runs a loop or switches versions', { timeout: TIMEOUT_MS }, async () => {
    await using watched = await openPage(`${server.url}#/learning`, { key: key('reader') });
    const { page } = watched;
    await page.locator('.lessons > li').first().waitFor();
    expect(await page.getByRole('button', { name: /undo/i }).count()).toBe(0);
    await page.getByRole('tab', { name: 'Versions' }).click();
    await page.getByRole('heading', { name: server.model }).waitFor();
    expect(await page.getByRole('button', { name: /train now|thoroughly|use version|undo|revert/i }).count()).toBe(0);
  });

  test(
    'has no serious accessibility violations, dark or light, on a desktop or a phone',
    { timeout: TIMEOUT_MS },
    async () => {
      for (const options of screensOf('dark desktop')) {
        await using watched = await openPage(`${server.url}#/learning`, { key: key('admin'), ...options });
        const { page } = watched;
        await page.locator('.lessons > li').first().waitFor();
        expect(await findViolations(page)).toEqual([]);
        await page.getByRole('tab', { name: 'Versions' }).click();
        await page.getByRole('heading', { name: server.model }).waitFor();
        expect(await findViolations(page)).toEqual([]);
        await page.getByRole('tab', { name: 'Charts' }).click();
        await page.getByRole('img', { name: /rated good, rated bad/ }).waitFor();
        expect(await findViolations(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      }
    },
  );
});
