// The documentation as a site: every link of every page leads somewhere, and the server serves it.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { readDashboardFiles } from '../src/node/server/dashboard-files.ts';
import { createTestServer } from './support/test-server.ts';

const folder = fileURLToPath(new URL('../dist/docs/', import.meta.url));
const isBuilt = existsSync(join(folder, 'index.html')) && existsSync(join(folder, '../dashboard/index.html'));
if (!isBuilt) console.log('documentation site skipped: dist/ is not built, run "npm run build"');

const pages = isBuilt
  ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'))
  : [];
const textOf = (page: string): string => readFileSync(join(folder, page), 'utf8');
const unescape = (text: string): string => text.replaceAll('&amp;', '&').replaceAll('&quot;', '"');

describe.skipIf(!isBuilt)('[DS1] the documentation site', () => {
  test('has a page for each guide, and no link that leads nowhere', () => {
    expect(pages.length).toBeGreaterThan(60);
    const broken: string[] = [];
    for (const page of pages) {
      for (const [, attribute, value] of textOf(page).matchAll(/ (href|src)="([^"]*)"/g)) {
        const link = unescape(value!);
        if (/^(?:https?:|mailto:)/.test(link)) continue;
        const [path, fragment] = link.split('#');
        const target = path === '' ? page : posix.join(posix.dirname(page), path!);
        const isThere = existsSync(join(folder, target));
        const hasAnchor = fragment === undefined || (isThere && textOf(target).includes(`id="${fragment}"`));
        if (!isThere || !hasAnchor) broken.push(`${page}: ${attribute} ${link}`);
      }
    }
    expect(broken).toEqual([]);
  });

  test('has no script and loads nothing from other hosts', () => {
    const offenders = pages.filter((page) =>
      /<script|<link[^>]+href="(?!\S*docs\.css)|src="https?:/.test(textOf(page)),
    );
    expect(offenders).toEqual([]);
  });

  test('is served at /docs without a key', async () => {
    const { fetch } = createTestServer([], { dashboard: readDashboardFiles(), isOpen: false });
    const get = (path: string): Promise<Response> => fetch(new Request(`http://localhost${path}`));
    const moved = await get('/docs');
    expect([moved.status, moved.headers.get('location')]).toEqual([308, '/docs/']);
    const index = await get('/docs/');
    expect([index.status, index.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await index.text()).toContain('<a href="serve.html">HTTP server</a>');
    expect((await get('/docs/api/http.html')).status).toBe(200);
    expect((await get('/docs/docs.css')).headers.get('content-type')).toBe('text/css; charset=utf-8');
    for (const path of ['/docs/nope.html', '/docs/..%2fpackage.json']) {
      expect((await get(path)).status, path).toBe(404);
    }
  });
});
