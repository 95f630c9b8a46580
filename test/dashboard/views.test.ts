// Every view on desktop and phone, light and dark: its structure as assistive technology sees it, and its layout by boxes.
import { hostname } from 'node:os';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { canRun, type DashboardServer, findLayoutFaults, openPage, screensOf, startDashboardServer, STORIES } from './support/index.ts'; // prettier-ignore

let server: DashboardServer;
/** The path of each view, with data in it. */
const paths: Record<string, string> = {};

beforeAll(async () => {
  if (!canRun) return;
  server = await startDashboardServer({ modelPath: STORIES });
  const post = async (path: string, body: object): Promise<{ id: string }> =>
    (await (await server.ask(path, { method: 'POST', body })).json()) as { id: string };
  const ask = (content: string) =>
    post('/v1/chat/completions', { model: server.model, messages: [{ role: 'user', content }], max_tokens: 8, temperature: 0, session: 'visitor' }); // prettier-ignore
  await ask('Once upon a time');
  const { id } = await ask('The little girl went');
  const requestId = id.replace('chatcmpl-', '');
  await post('/v1/feedback', { request_id: id, correction: 'The little girl went home.' });
  const outcome = async (): Promise<string> => (await server.ask(`/v1/feedback/${requestId}`)).text();
  await vi.waitUntil(async () => !(await outcome()).includes('pending'), { timeout: 60_000 });
  const record = await post('/admin/memory/add', { text: 'The museum has three ships.' });
  const audit = async (): Promise<string> =>
    (await server.ask('/admin/memory/audit/search', { method: 'POST', body: {} })).text();
  await vi.waitUntil(async () => (await audit()).includes(requestId), { timeout: 60_000 });
  Object.assign(paths, { chat: 'chat', live: 'live', audit: 'audit', 'audit entry': `audit/${requestId}`, memory: 'memory', record: `memory/${record.id}`, learning: 'learning', models: 'models', keys: 'keys' }); // prettier-ignore
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
});

const NAMES = ['chat', 'live', 'audit', 'audit entry', 'memory', 'record', 'learning', 'models', 'keys'];

async function openView(page: Page, name: string): Promise<void> {
  await page.goto(`${server.url}#/${paths[name]}`);
  await page.locator('main h1').waitFor();
  await expect.poll(() => page.locator('.loading').count()).toBe(0);
  const grid = ({ audit: 'Requests', 'audit entry': 'Similar requests', memory: 'Records' } as Record<string, string>)[
    name
  ];
  if (grid !== undefined) await page.getByRole('grid', { name: grid }).waitFor();
  if (name === 'live') await page.getByRole('heading', { name: 'Tokens/s' }).waitFor();
}

/** Parts that depend on the speed of the machine, its cached models or its embedder. */
const VARIABLE = [
  '.grid-row',
  '.waterfall tbody tr',
  '[aria-label="Models on this machine"] > *',
  '[aria-label="Technical details"] > *',
  '[aria-label="Collections"] button + button',
  ...['Latency', 'Page pool', 'Prefix cache'].map((name) => `[role=tabpanel] [aria-label="${name}"] > *`),
].join(', ');

/** The structure of a view without its figures, times, ids and variable parts. */
async function structureOf(page: Page): Promise<string> {
  // Hidden, not removed: the page would draw removed rows again.
  await page.evaluate((selector) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(`:is(${selector}) { display: none !important; }`);
    document.adoptedStyleSheets = [sheet];
  }, VARIABLE);
  return (await page.locator('main').ariaSnapshot())
    .replaceAll(hostname(), 'HOST')
    .replaceAll(/[A-Z][a-z]{2} \d+, \d{4}, [\d:]+\s[AP]M/g, 'TIME')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
    .replaceAll(/\b[0-9a-f]{12,}…?/g, 'HASH')
    .replaceAll(/embedder: [^"\n]*/g, 'embedder: E')
    .replaceAll(/-?\b\d[\d.,]*(?: (?:ms|µs|s|min|h|[KMG]iB|B|%))?(?!\w)/g, '0')
    .replaceAll(/\bnow\b|0 (?:sec|min|hr)\. ago/g, 'AGO');
}

const shortScreens = [...screensOf('light desktop'), ...screensOf('dark phone')];
/** Each screen once: in the long form both lists have all of them. */
const screens = [...new Map(shortScreens.map((screen) => [JSON.stringify(screen), screen])).values()];

describe.skipIf(!canRun)('the view', () => {
  test.each(NAMES)('%s has its structure, and nothing covered, cut off or outside the screen', async (name) => {
    const structures = new Map<string, string>();
    for (const screen of screens) {
      await using opened = await openPage(server.url, screen);
      const { page } = opened;
      await openView(page, name);
      expect(await findLayoutFaults(page), `${name}, ${JSON.stringify(screen)}`).toEqual([]);
      // Light and dark have one structure; a phone may hide what a desktop shows.
      const size = screen.viewport.width > 760 ? 'desktop' : 'phone';
      const structure = await structureOf(page);
      expect(structure, `${name}, ${size}: light and dark`).toBe(structures.get(size) ?? structure);
      structures.set(size, structure);
    }
    expect(structures.get('desktop')).toMatchSnapshot();
  });
});
