// The declarations of the package: tsc writes those of all sources into .cache/types, and dist/types gets what its exports reach, bundled.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { makeFolder } from './peers.mjs';
import { nodeTool, root, run } from './setup.mjs';

const PACKAGES = ['rolldown-plugin-dts@0.23.0', 'rolldown@1.2.18'];

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

/** Only publishing needs the bundler of declarations. */
function requireBundler() {
  const folder = makeFolder('.cache/dts');
  if (!existsSync(join(folder, 'node_modules/rolldown-plugin-dts/package.json'))) {
    console.error('Installing the bundler of declarations …');
    const args = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--legacy-peer-deps']; // prettier-ignore
    if (run('npm', [...args, ...PACKAGES], { cwd: folder }) !== 0) process.exit(1);
  }
  const fileOf = (name) => join(folder, 'node_modules', name, 'dist/index.mjs');
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
