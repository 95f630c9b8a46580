// The declarations of the package: tsc writes those of all sources into .cache/types, and dist/types gets what its exports reach, bundled.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ensureDeclarationBundler } from './peers.mjs';
import { nodeTool, root, run } from './setup.mjs';

/** Whether tsc accepts the sources. */
export const emitDeclarations = () => run(...nodeTool('typescript/bin/tsc', '-p', 'tsconfig.json')) === 0;

/** The declarations of the package's exports by the name of their file, as tsc wrote them. */
export function listDeclarations() {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const names = Object.entries(exports).flatMap(([name, target]) => (typeof target === 'object' ? [name] : []));
  return Object.fromEntries(
    names.map((name) => {
      const folder = name === '.' ? '' : name.slice(2);
      return [folder || 'index', join(root, '.cache/types', folder, 'index.d.ts')];
    }),
  );
}

function requireBundler() {
  if (!ensureDeclarationBundler()) {
    console.error('error: npm could not install the bundler of declarations in the pinned versions');
    process.exit(1);
  }
  const fileOf = (name) => join(root, '.cache/dts/node_modules', name, 'dist/index.mjs');
  return Promise.all(['rolldown', 'rolldown-plugin-dts'].map((name) => import(pathToFileURL(fileOf(name)).href)));
}

/** Writes dist/types. */
export async function buildTypes() {
  if (!emitDeclarations()) process.exit(1);
  const [{ rolldown }, { dts }] = await requireBundler();
  const out = join(root, 'dist/types');
  rmSync(out, { recursive: true, force: true });
  const bundle = await rolldown({
    input: listDeclarations(),
    plugins: [dts({ dtsInput: true, sourcemap: false })],
    external: (id) => !/^(?:\.|[\\/]|[a-z]:)/i.test(id),
  });
  await bundle.write({ dir: out, format: 'es', chunkFileNames: '[name]-[hash].d.ts' });
  await bundle.close();
}
