// The declarations of the package: tsc writes those of all sources into .cache/types, and dist/types gets the ones that its exports reach.
import { existsSync, mkdirSync, copyFileSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { nodeTool, root, run } from './setup.mjs';

/** Where tsconfig.json lets tsc write. */
export const declarations = join(root, '.cache/types');

/** Whether tsc accepts the sources. */
export const emitDeclarations = () => run(...nodeTool('typescript/bin/tsc', '-p', 'tsconfig.json')) === 0;

/** Files that a declaration imports, in its folder. */
const importsOf = (path) =>
  [...readFileSync(path, 'utf8').matchAll(/(?:\bfrom\s*|\bimport\()\s*['"](\.[^'"]+)['"]/g)].map(([, specifier]) =>
    join(dirname(path), specifier.replace(/\.(?:ts|js)$/, '.d.ts')),
  );

/** Writes dist/types. */
export function buildTypes() {
  if (!emitDeclarations()) process.exit(1);
  const out = join(root, 'dist/types');
  rmSync(out, { recursive: true, force: true });
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const queue = Object.values(exports)
    .filter((target) => typeof target === 'object')
    .map(({ types }) => join(declarations, types.replace('./dist/types/', '')));
  const seen = new Set();
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    if (seen.has(path) || !existsSync(path)) continue;
    seen.add(path);
    const target = join(out, path.slice(declarations.length + 1));
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(path, target);
    queue.push(...importsOf(path));
  }
}
