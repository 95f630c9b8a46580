// Builds the dashboard with vite into a folder, compresses each file, and fails if too much loads before the chat is usable.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { root } from './setup.mjs';

/** Gzip size of all files that opening the page loads. */
const MAX_FIRST_LOAD_BYTES = 150_000;

const [out] = process.argv.slice(2);

/** The files loaded for the page with its first view: the entry, the chat, and their static imports. */
function firstLoadFiles() {
  const manifest = JSON.parse(readFileSync(join(out, '.vite/manifest.json'), 'utf8'));
  const files = new Set(['index.html']);
  const visit = (name) => {
    const { file, css = [], imports = [], assets = [] } = manifest[name];
    if (files.has(file)) return;
    for (const one of [file, ...css, ...assets]) files.add(one);
    imports.forEach(visit);
  };
  visit('index.html');
  visit('src/views/chat/index.tsx');
  return [...files];
}

const configFile = join(root, 'dashboard/vite.config.mjs');
await build({
  configFile,
  logLevel: 'warn',
  build: { outDir: out, emptyOutDir: true, rolldownOptions: { checks: { pluginTimings: false } } },
});
for (const name of ['index.html', ...readdirSync(join(out, 'assets')).map((name) => `assets/${name}`)]) {
  const bytes = readFileSync(join(out, name));
  const packed = gzipSync(bytes, { level: 9 });
  if (packed.length < bytes.length) writeFileSync(`${join(out, name)}.gz`, packed);
}
const sizes = firstLoadFiles().map((name) => gzipSync(readFileSync(join(out, name)), { level: 9 }).length);
rmSync(join(out, '.vite'), { recursive: true }); // Build information that an installed package does not need.
const total = sizes.reduce((sum, size) => sum + size, 0);
console.error(
  `first load: ${sizes.length} files, ${(total / 1000).toFixed(1)} kB gzip of ${MAX_FIRST_LOAD_BYTES / 1000}`,
);
if (total > MAX_FIRST_LOAD_BYTES) {
  console.error('the first load of the dashboard is too large: import code of other views on demand');
  process.exit(1);
}
