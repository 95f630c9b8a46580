// The native kernels as users get them: the built package, the engine's worker thread, good and bad binaries.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'; // prettier-ignore
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PREBUILD_NAME } from '../src/platform/node/kernels/native-addon.ts';
import { buildRandomModel } from './support/random-model.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const builds = `prebuilds/${PREBUILD_NAME}`;
const isBuilt = existsSync(join(root, 'dist/lib/index.js'));
/** Names of the builds that are here: `npm test` compiles the best one, the long form all of them. */
const built = (existsSync(join(root, builds)) ? readdirSync(join(root, builds)) : [])
  .map((file) => /^ruvllm-(?!features)(\w+)\.node$/.exec(file)?.[1])
  .filter((name) => name !== undefined);
const hasNative = built.length > 0;
if (!isBuilt) console.log('native tests skipped: dist/ is not built, run "npm run build"');
else if (!hasNative) console.log('skipped tests of native kernels: not built here (npm run build:native)');

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-native-'));
const model = join(folder, 'model.gguf');
beforeAll(() => {
  const shape = { contextLength: 128 };
  writeFileSync(model, buildRandomModel({ architecture: 'llama', type: 'Q4_0', seed: 5, shape }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a separate program that has `loadModel` and collects warnings; returns its output. */
function runProgram(home: string, code: string, env: Record<string, string> = {}) {
  const program = `
    import { loadModel } from ${JSON.stringify(join(home, 'dist/lib/index.js'))};
    const warnings = [];
    process.on('warning', ({ code, message }) => warnings.push({ code, message }));
    const model = ${JSON.stringify(model)};
    const refused = (promise) => promise.then(() => null, ({ code, message }) => ({ code, message }));
    ${code}`;
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    ['--no-warnings', '--input-type=module', '-e', program],
    {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', HOME: folder, ...env },
    },
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
}

/** The built package with other binaries. */
function copyPackage(name: string): string {
  const home = join(folder, name);
  mkdirSync(join(home, builds), { recursive: true });
  cpSync(join(root, 'dist/lib'), join(home, 'dist/lib'), { recursive: true });
  cpSync(join(root, 'wasm'), join(home, 'wasm'), { recursive: true });
  cpSync(join(root, 'package.json'), join(home, 'package.json'));
  symlinkSync(join(root, 'node_modules'), join(home, 'node_modules'));
  return home;
}

const LOAD_AUTO = `
  const loaded = await loadModel(model, { numThreads: 2 });
  const kernels = loaded.modelInfo().kernels;
  const failure = await refused(loadModel(model, { kernels: 'native' }));
  await loaded.dispose();
  console.log(JSON.stringify({ kernels, failure, warnings }));`;

test.skipIf(!isBuilt)('without a build uses WASM silently', () => {
  expect(runProgram(copyPackage('bare'), LOAD_AUTO)).toEqual({
    kernels: expect.stringMatching(/^wasm/),
    failure: { code: 'unsupported', message: 'native kernels are not built for this machine: npm run build:native' },
    warnings: [],
  });
});

test.skipIf(!isBuilt)('a file that is not an addon gives a warning in the main thread and WASM', () => {
  const home = copyPackage('garbage');
  writeFileSync(join(home, builds, 'ruvllm-baseline.node'), 'not an addon');
  const { kernels, failure, warnings } = runProgram(home, LOAD_AUTO);
  expect(kernels).toMatch(/^wasm/);
  expect(failure).toMatchObject({ code: 'kernel_failed' });
  expect(warnings[0]).toMatchObject({ code: 'RUVLLM_NATIVE_REFUSED' });
  expect(warnings[0].message).toMatch(/^native baseline kernels refused: cannot be loaded: /);
});

test.skipIf(!isBuilt || !hasNative)('skips a truncated best binary and uses the next one', () => {
  const { kernels: best } = runProgram(root, LOAD_AUTO);
  const name = /^native \((\w+)\)$/.exec(best)![1]!;
  const home = copyPackage('cut');
  cpSync(join(root, builds), join(home, builds), { recursive: true });
  truncateSync(join(home, builds, `ruvllm-${name}.node`), 5000);
  const { kernels, failure, warnings } = runProgram(home, LOAD_AUTO);
  if (built.length === 1) {
    expect(kernels).toMatch(/^wasm/);
    expect(failure).toMatchObject({ code: 'kernel_failed' });
  } else {
    expect(kernels).toMatch(/^native \(/);
    expect(kernels).not.toBe(best);
    expect(failure).toBeNull();
  }
  expect(warnings[0].message).toContain(`native ${name} kernels refused: cannot be loaded: `);
});

test.skipIf(!isBuilt || !hasNative)('runs several engines of one process, concurrently and in sequence', () => {
  const code = `
    const load = () => loadModel(model, { kernels: 'native', numThreads: 2 });
    const answer = async (m) => (await m.generate('a', { maxTokens: 12, temperature: 0, ignoreEos: true })).text;
    const [a, b] = await Promise.all([load(), load()]);
    const texts = await Promise.all([answer(a), answer(b), answer(a)]);
    await a.dispose();
    texts.push(await answer(b));
    await b.dispose();
    const c = await load();
    texts.push(await answer(c));
    await c.dispose();
    console.log(JSON.stringify({ texts, warnings }));`;
  const { texts, warnings } = runProgram(root, code);
  expect(warnings).toEqual([]);
  expect(texts).toHaveLength(5);
  expect(new Set(texts).size).toBe(1);
});

test.skipIf(!isBuilt || !hasNative)('RUVLLM_NATIVE_BUILD reaches the engine', () => {
  const { kernels } = runProgram(root, LOAD_AUTO, { RUVLLM_NATIVE_BUILD: 'baseline' });
  // Where the baseline is not built, nothing is left below the limit.
  if (built.includes('baseline')) expect(kernels).toBe('native (baseline)');
  else expect(kernels).toMatch(/^wasm/);
  const code = 'console.log(JSON.stringify(await refused(loadModel(model))));';
  expect(runProgram(root, code, { RUVLLM_NATIVE_BUILD: 'best' })).toMatchObject({ code: 'invalid_option' });
});
