// Bundles the library for pages into a folder: a few ES modules without bare imports, its workers, and the kernels. A static server can
// serve the folder as it is.
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { root } from './setup.mjs';

/** The module of the page and the scripts of its workers. Their names are in `new URL(…)`. */
const ENTRIES = {
  index: 'browser/index.ts',
  'engine-worker': 'browser/engine-worker.ts',
  'storage-worker': 'browser/storage-worker.ts',
  'log-worker': 'browser/log-worker.ts',
  'learning-worker': 'browser/learning-worker.ts',
  'vision-worker': 'browser/vision-worker.ts',
  'kernel-helper': 'platform/browser/kernels/kernel-helper.ts',
};

const [folder] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const bundled = await rolldown({
  input: Object.fromEntries(Object.entries(ENTRIES).map(([name, path]) => [name, join(root, 'src', path)])),
  platform: 'browser',
  onLog(level, log, handle) {
    // A module of Node in a page is an error that only some users would meet.
    if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
    handle(level, log);
  },
});
await bundled.write({
  dir: folder,
  format: 'es',
  // Shared chunks run before the module of the page, which has to configure zod first: see src/browser/no-eval.ts.
  strictExecutionOrder: true,
  minify: true,
  entryFileNames: '[name].js',
  // In the same folder: workers and kernels are found relative to the module that names them.
  chunkFileNames: 'chunk-[name]-[hash].js',
});
await bundled.close();
const kernels = join(root, 'wasm');
for (const name of readdirSync(kernels)) {
  if (name.endsWith('.wasm')) copyFileSync(join(kernels, name), join(folder, name));
}
