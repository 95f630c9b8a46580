// npm start: completes a fresh clone, then serves the default model. `npm start -- MODEL --port 8081` passes arguments on.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { build } from './build.mjs';
import { tryBuildNative } from './build-native.mjs';
import { root } from './setup.mjs';

build({ isDashboardOptional: true });
await tryBuildNative();

const server = spawn(process.execPath, [join(root, 'bin/ruvllm.mjs'), 'serve', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
// Ctrl-C reaches the whole process group: the server finishes its work, and this process waits for it.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => server.kill('SIGTERM'));
server.on('error', (error) => {
  console.error(`error: cannot start ${process.execPath}: ${error.message}`);
  process.exitCode = 1;
});
server.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});
