// npm start: completes a fresh clone, then serves the default model. `npm start -- MODEL --port 8081` passes arguments on. The server
// starts as soon as there is something to run; the pages and the native kernels are built beside it.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { buildLibrary, buildPages } from './build.mjs';
import { tryBuildNative } from './build-native.mjs';
import { prefetch } from './prefetch.mjs';
import { root } from './setup.mjs';

const args = process.argv.slice(2);
const downloads = prefetch(args);
await buildLibrary();
const pages = buildPages({ isOptional: true });
const native = tryBuildNative();
await downloads.model;

const server = spawn(process.execPath, [join(root, 'bin/ruvllm.mjs'), 'serve', ...args], { stdio: 'inherit' });
// Ctrl-C reaches the whole process group: the server finishes its work, and this process waits for it.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => server.kill('SIGTERM'));
server.on('error', (error) => {
  console.error(`error: cannot start ${process.execPath}: ${error.message}`);
  process.exitCode = 1;
});
server.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));

const [{ built }] = await Promise.all([native, pages]);
if (built.length > 0)
  console.error(`native kernels are ready (${built.join(', ')}): the next load of a model uses them`);
