import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openDashboardFiles, readDashboardFiles } from './dashboard-files.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ruvllm-dashboard-files-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('[D1] a build is served whole: each file with its kind, its tag and what it was packed into', () => {
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<p>');
  writeFileSync(join(folder, 'assets/a-1.js'), 'let a;');
  writeFileSync(join(folder, 'assets/a-1.js.br'), 'br');
  writeFileSync(join(folder, 'assets/a-1.js.gz'), 'gz');
  writeFileSync(join(folder, 'assets/b.map'), '{}');
  writeFileSync(join(folder, 'secret.html'), 'no');
  writeFileSync(join(folder, 'icon.svg'), '<svg>');
  const docs = join(folder, 'pages');
  mkdirSync(join(docs, 'api'), { recursive: true });
  writeFileSync(join(docs, 'api/index.html'), '<p>');
  writeFileSync(join(docs, 'notes.md'), 'no');
  const engine = join(folder, 'engine');
  mkdirSync(engine);
  writeFileSync(join(engine, 'kernels.simd.wasm'), 'wasm');
  writeFileSync(join(engine, 'notes.md'), 'no');
  const files = readDashboardFiles(folder, docs, engine)!;
  expect(files.get('/engine/kernels.simd.wasm')!.contentType).toBe('application/wasm');
  expect([...files.keys()]).toEqual([
    '/',
    '/icon.svg',
    '/assets/a-1.js',
    '/engine/kernels.simd.wasm',
    '/docs/api/index.html',
    '/docs/api/',
  ]);
  const { contentType, etag, bodies } = files.get('/assets/a-1.js')!;
  expect(contentType).toBe('text/javascript; charset=utf-8');
  expect(Object.entries(bodies).map(([name, body]) => [name, new TextDecoder().decode(body)])).toEqual([
    ['identity', 'let a;'],
    ['br', 'br'],
    ['gzip', 'gz'],
  ]);
  expect(etag).toMatch(/^"[\w-]{22}"$/);
  expect(files.get('/')!.etag).not.toBe(etag);
  // Each file is read at its first request.
  writeFileSync(join(docs, 'api/index.html'), '<p>new');
  expect(new TextDecoder().decode(files.get('/docs/api/')!.bodies.identity)).toBe('<p>new');
});

test('[D1] what was not built is not there', () => {
  const docs = join(folder, 'docs');
  expect(readDashboardFiles(folder, docs, docs)).toBe(null);
  writeFileSync(join(folder, 'index.html'), '');
  symlinkSync(folder, join(folder, 'other'));
  expect([...readDashboardFiles(folder, docs, docs)!.keys()]).toEqual(['/']);
});

test('[D1] files appear when a build ends beside the server; nothing outside the build is named by a request', () => {
  const docs = join(folder, 'docs');
  writeFileSync(join(folder, 'secret.html'), 'no');
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  try {
    const files = openDashboardFiles(folder, docs, docs);
    expect(files.get('/')).toBe(undefined);
    writeFileSync(join(folder, 'index.html'), '<p>');
    expect(files.get('/')).toBe(undefined);
    now.mockReturnValue(1001);
    expect(files.get('/')!.contentType).toBe('text/html; charset=utf-8');
    for (const path of ['/secret.html', '/assets/../secret.html', '/docs/../secret.html', 'secret.html']) {
      expect(files.get(path), path).toBe(undefined);
    }
  } finally {
    now.mockRestore();
  }
});
