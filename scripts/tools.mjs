// Runs a TypeScript tool of the repository (bench/…) on the built library.
import { join } from 'node:path';
import { build, buildTested } from './build.mjs';
import { tryBuildNative } from './build-native.mjs';
import { root, run } from './setup.mjs';
import { transpile } from './transpile.mjs';

export async function runTool(path, args) {
  await build();
  await tryBuildNative();
  await buildTested();
  await transpile();
  return run(process.execPath, [join(root, '.cache/tools', path.replace(/\.ts$/, '.js')), ...args]);
}
