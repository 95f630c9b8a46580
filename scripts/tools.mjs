// Runs a TypeScript tool of the repository (bench/…), compiled into .cache/tools, apart from published files.
import { join } from 'node:path';
import { build } from './build.mjs';
import { tryBuildNative } from './build-native.mjs';
import { nodeTool, root, run, runOrExit } from './setup.mjs';

export async function runTool(path, args) {
  build();
  await tryBuildNative();
  runOrExit(...nodeTool('typescript/bin/tsc', '-p', 'tsconfig.tools.json'));
  return run(process.execPath, [join(root, '.cache/tools', path.replace(/\.ts$/, '.js')), ...args]);
}
