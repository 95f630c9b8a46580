// Modules of the repository one by one in .cache/tools: what tests, benches and campaigns import is code that can start threads, and not
// the bundles of users. Only changed files are written.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ensureInstalled, root } from './setup.mjs';

const FOLDERS = ['src', 'bench', 'campaign', 'fuzz', 'test'];
const out = join(root, '.cache/tools');

const isModule = (name) =>
  /\.(?:ts|mjs|json)$/.test(name) &&
  !/\.(?:test|d)\.ts$|[\\/]node_modules[\\/]|^clients[\\/]|[\\/]assembly[\\/]/.test(name);

export async function transpile() {
  ensureInstalled();
  const { transformSync } = await import('rolldown/utils');
  const written = new Set();
  for (const folder of FOLDERS) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter(isModule)) {
      const path = join(root, folder, name);
      const target = join(out, folder, name.replace(/\.ts$/, '.js'));
      written.add(target);
      const { mtimeMs } = statSync(path);
      if (existsSync(target) && statSync(target).mtimeMs > mtimeMs) continue;
      mkdirSync(dirname(target), { recursive: true });
      const text = readFileSync(path, 'utf8');
      if (!name.endsWith('.ts')) writeFileSync(target, text);
      else {
        const { code, errors } = transformSync(path, text, { lang: 'ts', typescript: { rewriteImportExtensions: 'rewrite' } }); // prettier-ignore
        if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`);
        writeFileSync(target, code);
      }
    }
  }
  for (const name of existsSync(out) ? readdirSync(out, { recursive: true, encoding: 'utf8' }) : []) {
    if (/\.\w+$/.test(name) && !written.has(join(out, name))) rmSync(join(out, name), { recursive: true, force: true });
  }
}
