// Builds dist/dashboard with vite, compresses each file, and reports the size loaded before the chat is usable.
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { nodeTool, root, run } from './setup.mjs';

const sources = join(root, 'dashboard');
const out = join(root, 'dist/dashboard');
/** Gzip size of all files that opening the page loads. */
export const MAX_FIRST_LOAD_BYTES = 150_000;

function newestSource() {
  const files = readdirSync(sources, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const times = files.map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs);
  return Math.max(statSync(join(root, 'package-lock.json')).mtimeMs, ...times);
}

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

const VITE = nodeTool('vite/bin/vite.js', 'build', '--config', join(sources, 'vite.config.mjs'), '--logLevel', 'warn');

/** `isOptional`: if the bundler cannot run, only the dashboard is missing, with one sentence. Platforms lack its binary most often. */
export function buildDashboard({ force = false, isOptional = false, bundler = VITE } = {}) {
  const stamp = join(out, 'index.html');
  if (!force && existsSync(stamp) && statSync(stamp).mtimeMs > newestSource()) return;
  console.error('Building the dashboard …');
  const status = run(...bundler, { stdio: isOptional ? 'ignore' : 'inherit' });
  if (status !== 0) {
    if (!isOptional) process.exit(status);
    console.error(
      'The dashboard was not built because vite failed (npm run build shows why); the server runs without it.',
    );
    return;
  }
  for (const name of ['index.html', ...readdirSync(join(out, 'assets')).map((name) => `assets/${name}`)]) {
    const bytes = readFileSync(join(out, name));
    const packed = {
      '.br': brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
      '.gz': gzipSync(bytes, { level: 9 }),
    };
    for (const [suffix, data] of Object.entries(packed)) {
      if (data.length < bytes.length) writeFileSync(join(out, name + suffix), data);
    }
  }
  const sizes = firstLoadFiles().map((name) => gzipSync(readFileSync(join(out, name)), { level: 9 }).length);
  rmSync(join(out, '.vite'), { recursive: true }); // Build information that an installed package does not need.
  const total = sizes.reduce((sum, size) => sum + size, 0);
  console.error(
    `first load: ${sizes.length} files, ${(total / 1000).toFixed(1)} kB gzip of ${MAX_FIRST_LOAD_BYTES / 1000}`,
  );
  if (total <= MAX_FIRST_LOAD_BYTES || isOptional) return;
  console.error('the first load of the dashboard is too large: import code of other views on demand');
  process.exit(1);
}

if (process.argv[1] && import.meta.filename === process.argv[1]) buildDashboard({ force: true });
