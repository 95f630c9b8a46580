import { beforeAll, describe, expect, test } from 'vitest';
import { campaign } from '../support/campaign.ts';
import {
  answerBriefly,
  canRun,
  findViolations,
  openPage,
  type SharedDashboardServer,
  sharedTenant,
  startDashboardServer,
} from './support/index.ts';

let server: SharedDashboardServer;
const tokenOf = (name: string): string => server.tokens.get(name)!.token;

beforeAll(async () => {
  if (!canRun) return;
  const keys = { root: ['admin'], user: ['inference'], reader: ['read-only'], leaver: ['inference'] };
  server = await sharedTenant('session', keys);
});

describe.skipIf(!canRun)('session', () => {
  test('serves the page without a key and protects its data', async () => {
    await using opened = await openPage(server.url);
    await opened.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    const paths = opened.requests
      .map((url) => new URL(url).pathname)
      .filter((path) => !/^\/(?:assets\/|icon\.svg$|manifest\.webmanifest$)/.test(path));
    expect(paths).toEqual(['/', '/dashboard.json']);
    expect((await server.ask('/v1/whoami')).status).toBe(401);
  });

  test('has room for its links and buttons in the header of a phone', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('root'), viewport: { width: 360, height: 740 } });
    const { page } = opened;
    const link = (await page.getByRole('link', { name: 'Documentation' }).boundingBox())!;
    const brand = await page.locator('.brand > *').evaluateAll((parts) => parts.map((part) => part.getBoundingClientRect().right)); // prettier-ignore
    expect(Math.max(...brand)).toBeLessThanOrEqual(link.x);
  });

  test.each(campaign({ short: ['light'], long: ['light', 'dark'] } as const))(
    'has no serious accessibility violations on the sign-in page: %s',
    async (colorScheme) => {
      await using opened = await openPage(server.url, { colorScheme });
      await opened.page.getByRole('heading', { name: 'Sign in' }).waitFor();
      expect(await findViolations(opened.page)).toEqual([]);
    },
  );

  test('rejects a wrong key and stores a valid one only in the tab', async () => {
    await using opened = await openPage(server.url, { expectedStatuses: [401] });
    const { page } = opened;
    await page.getByLabel('API key').fill('nonsense');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('the API key is not valid').waitFor();
    await page.getByLabel('API key').fill(` ${tokenOf('user')} `);
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    await page.reload();
    await page.getByRole('textbox', { name: 'Message' }).waitFor();
    expect(await page.evaluate(() => JSON.stringify(localStorage) + document.cookie + location.href)).not.toContain(
      tokenOf('user'),
    );
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain(tokenOf('user'));
  });

  test('signs out on the next request after the key is revoked, and clears the page', async () => {
    const { id, token } = server.tokens.get('leaver')!;
    await using opened = await openPage(server.url, { key: token, expectedStatuses: [401] });
    const { page } = opened;
    const message = page.getByRole('textbox', { name: 'Message' });
    await answerBriefly(page);
    await message.fill('My secret plan');
    await page.keyboard.press('Enter');
    await page.locator('.answer-details').waitFor(); // the answer may be empty, without rating buttons
    await server.revokeKey(id);
    const signedOut = page.getByText('You were signed out: the API key is not valid.');
    // The page may sign out before it is asked again: it saves the conversation after an answer.
    await message.fill('And now?', { timeout: 5000 }).catch(() => signedOut.waitFor());
    if (!(await signedOut.isVisible())) await page.keyboard.press('Enter');
    await signedOut.waitFor();
    expect(await page.getByText('My secret plan').count()).toBe(0);
    await page.getByLabel('API key').fill(tokenOf('user'));
    await page.keyboard.press('Enter');
    await page.getByText('What would you like to know?').waitFor();
    expect(await page.getByText('My secret plan').count()).toBe(0);
  });

  test('shows a read-only key no button that writes', async () => {
    await using opened = await openPage(server.url, { key: tokenOf('reader') });
    const { page } = opened;
    await page.getByRole('heading', { level: 1 }).waitFor();
    const views = await page.getByRole('navigation').getByRole('link').allInnerTexts();
    expect(views).not.toContain('Chat');
    expect(views).not.toContain('API keys');
    expect(views).toContain('Models');
    for (const view of views) {
      await page.getByRole('navigation').getByRole('link', { name: view }).click();
      await page.getByRole('heading', { level: 1, name: view }).waitFor();
      const writes = page.getByRole('button', {
        name: /load|pull|add|remove|delete|create|revoke|reset|revert|roll|activate|forget|run|stop|send/i,
      });
      expect(await writes.allInnerTexts(), view).toEqual([]);
    }
    // The URL of a view that is closed to this key opens its first view.
    await page.goto(`${server.url}#/keys`);
    await page.getByRole('heading', { level: 1, name: views[0]! }).waitFor();
  });

  test('lets an administrator create a key, shows it once, and revokes it', async () => {
    await using opened = await openPage(`${server.url}#/keys`, { key: tokenOf('root') });
    const { page } = opened;
    const hostile = '<img src=x onerror=alert(1)>';
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill(hostile);
    await page.getByRole('textbox', { name: 'Tenant' }).fill('guests');
    expect(await findViolations(page)).toEqual([]);
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const token = await page.locator('code.token').innerText();
    expect((await server.ask('/v1/models', { key: token })).status).toBe(200);
    await page.getByRole('button', { name: 'Done' }).click();
    expect(await page.content()).not.toContain(token);
    const row = page.getByRole('row').filter({ hasText: hostile });
    expect(await row.innerText()).toMatch(/guests[\s\S]*inference[\s\S]*active/);
    expect(await findViolations(page)).toEqual([]);
    await row.getByRole('button', { name: /^Revoke/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await row.getByText('revoked').waitFor();
    expect((await server.ask('/v1/models', { key: token })).status).toBe(401);
  });
});

describe.skipIf(!canRun)('an open server', () => {
  test('requires no key until the first one is created, which also signs this page in', async () => {
    await using open = await startDashboardServer();
    await using opened = await openPage(`${open.url}#/keys`);
    const { page } = opened;
    await page.getByText('No API keys').waitFor();
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('first');
    await page.getByText('The data collected so far belongs to the tenant local.').waitFor();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    const token = await page.locator('code.token').innerText();
    const identity = (await (await open.ask('/v1/whoami', { key: token })).json()) as { tenant: string };
    expect(identity.tenant).toBe('local');
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByText('active (yours)').waitFor();
    await page.getByRole('button', { name: 'Sign out' }).waitFor();
    expect((await open.ask('/v1/models')).status).toBe(401);
    expect((await open.ask('/admin/keys', { key: token })).status).toBe(200);
  });

  test('serves no page with --no-dashboard', async () => {
    await using bare = await startDashboardServer({ args: ['--no-dashboard', '--no-memory'] });
    // A line of text for Ollama's clients.
    expect((await bare.ask('/')).headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect((await bare.ask('/dashboard.json')).status).toBe(404);
    expect((await bare.ask('/v1/models')).status).toBe(200);
  });
});
