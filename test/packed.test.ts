// The published package in an empty folder: packed, unpacked beside its dependencies, and used.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PREBUILD_NAME } from '../src/platform/node/kernels/native-addon.ts';
import { buildRandomModel } from './support/random-model.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/dashboard/index.html'));
if (!isBuilt) console.log('tests of the packed package skipped: dist/ is not built, run "npm run build"');
const prebuilds = join(root, 'prebuilds', PREBUILD_NAME);
const hasNative = existsSync(prebuilds) && readdirSync(prebuilds).some((file) => /^ruvllm-(?!features)/.test(file));

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-packed-'));
const app = join(folder, 'app');
const modules = join(app, 'node_modules');
const command = join(modules, 'ruvllm/bin/ruvllm.mjs');
const model = join(app, 'model.gguf');
const options = { cwd: app, encoding: 'utf8' as const, env: { PATH: process.env['PATH'] ?? '', HOME: folder } };

/** Paths of node_modules that npm would install for a user: those of the lock file without development-only ones. */
function listInstalled(): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; optional?: boolean; peer?: boolean }>;
  };
  return Object.entries(packages)
    .filter(([path, { dev, devOptional, peer }]) => path !== '' && !dev && !devOptional && !peer)
    .map(([path]) => path)
    .filter((path) => existsSync(join(root, path)));
}

describe.skipIf(!isBuilt)('the packed package', () => {
  beforeAll(async () => {
    mkdirSync(join(modules, 'ruvllm'), { recursive: true });
    // Its scripts would rebuild the files that the tests use.
    const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
    const { stdout } = await run('npm', pack, { cwd: root, encoding: 'utf8', shell: process.platform === 'win32' });
    await run('tar', ['-xzf', join(folder, stdout.trim()), '-C', join(modules, 'ruvllm'), '--strip-components=1']);
    for (const path of listInstalled()) {
      mkdirSync(dirname(join(app, path)), { recursive: true });
      symlinkSync(join(root, path), join(app, path), 'junction');
    }
    writeFileSync(join(app, 'package.json'), JSON.stringify({ type: 'module' }));
    const shape = { contextLength: 128 };
    writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'Q4_0', seed: 5, shape }));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('has the dependencies and no development tools', () => {
    expect(listInstalled()).toContain('node_modules/hono');
    expect(listInstalled().filter((path) => /vite|typescript|assemblyscript|pglite|playwright/.test(path))).toEqual([]);
  });

  test('doctor reports kernels from the package', async () => {
    const { stdout } = await run(process.execPath, [command, 'doctor', '--json'], options);
    const { kernels } = JSON.parse(stdout) as { kernels: { name: string; isChosen: boolean; reason: string }[] };
    const chosen = kernels.find(({ isChosen }) => isChosen)!;
    expect(chosen.name).toBe(hasNative ? 'native' : 'wasm');
    if (!hasNative) {
      expect(kernels[0]!.reason).toBe(`not built: this package has none for ${PREBUILD_NAME}`);
    }
  });

  test('run generates', async () => {
    const args = [command, 'run', model, 'a', '--max-tokens', '4', '--temperature', '0', '--json'];
    const { stdout } = await run(process.execPath, args, options);
    expect(JSON.parse(stdout)).toMatchObject({ usage: { completionTokens: expect.any(Number) } });
  });

  test('the library can be imported by its name', async () => {
    const code = `
      import { loadModel } from 'ruvllm';
      const model = await loadModel(${JSON.stringify(model)}, { numThreads: 1 });
      const { text } = await model.generate('a', { maxTokens: 4, temperature: 0 });
      await model.dispose();
      console.log(typeof text);`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], options);
    expect(stdout).toBe('string\n');
  });

  test('serve provides the API and the dashboard', async () => {
    const args = [command, 'serve', model, '--port', '0', '--json', '--no-memory'];
    const server = spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
    const exit = once(server, 'exit');
    try {
      const [text] = (await once(server.stdout.setEncoding('utf8'), 'data')) as [string];
      const { url } = JSON.parse(text) as { url: string };
      const page = await fetch(`${url}/`);
      expect([page.status, (await page.text()).includes('<script')]).toEqual([200, true]);
      expect((await fetch(`${url}/v1/models`)).status).toBe(200);
    } finally {
      server.kill('SIGTERM');
      await exit;
    }
  });
});
