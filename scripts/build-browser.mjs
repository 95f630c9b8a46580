// Builds dist/browser-modules: the library for pages as a few ES modules without bare imports, its workers, and the kernels.
// A static server can serve the folder as it is.
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './setup.mjs';

const dist = join(root, 'dist');
const out = join(dist, 'browser-modules');
/** The module of the page and the scripts of its workers. Their names are in `new URL(…)`. */
const ENTRIES = {
  index: 'browser/index.js',
  'engine-worker': 'browser/engine-worker.js',
  'storage-worker': 'browser/storage-worker.js',
  'log-worker': 'browser/log-worker.js',
  'learning-worker': 'browser/learning-worker.js',
  'vision-worker': 'browser/vision-worker.js',
  'kernel-helper': 'platform/browser/kernels/kernel-helper.js',
};

/** Bundles the output of tsc. `isOptional`: if the bundler cannot run, only `ruvllm/browser` is missing, with one sentence. */
export function buildBrowser({ force = false, isOptional = false } = {}) {
  const stamp = join(out, 'index.js');
  if (!force && existsSync(stamp) && statSync(stamp).mtimeMs > statSync(join(dist, 'index.js')).mtimeMs) return;
  console.error('Building the modules for browsers …');
  // In a process of its own: the builds are synchronous, and a platform without the bundler's binary fails at the import.
  const status = run(process.execPath, [import.meta.filename], { stdio: isOptional ? 'ignore' : 'inherit' });
  if (status === 0) return;
  if (!isOptional) process.exit(status);
  console.error('ruvllm/browser was not built because the bundler failed (npm run build shows why).');
}

async function bundle() {
  const { rolldown } = await import('rolldown');
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const bundled = await rolldown({
    input: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, join(dist, path)])),
    platform: 'browser',
    onLog(level, log, handle) {
      // A module of Node in a page is an error that only some users would meet.
      if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
      handle(level, log);
    },
  });
  await bundled.write({
    dir: out,
    format: 'es',
    // Shared chunks run before the module of the page, which has to configure zod first: see src/browser/no-eval.ts.
    strictExecutionOrder: true,
    minify: true,
    entryFileNames: '[name].js',
    // In the same folder: workers and kernels are found relative to the module that names them.
    chunkFileNames: 'chunk-[name]-[hash].js',
  });
  await bundled.close();
  const kernels = join(dist, 'kernels/wasm');
  for (const name of readdirSync(kernels))
    if (name.endsWith('.wasm')) copyFileSync(join(kernels, name), join(out, name));
}

if (process.argv[1] && import.meta.filename === process.argv[1]) await bundle();
