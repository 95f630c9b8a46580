// npm start: whatever a fresh clone lacks, then a chat. `npm start -- MODEL --threads 2` hands the rest on.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { join } from 'node:path';
import { build } from './build.mjs';
import { tryBuildNative } from './build-native.mjs';
import { ensureInstalled, root } from './setup.mjs';

ensureInstalled();
build();
await tryBuildNative();

const chat = spawn(process.execPath, [join(root, 'bin/ruvllm.mjs'), 'chat', ...process.argv.slice(2)], {
  stdio: 'inherit',
});
// Ctrl-C reaches the whole process group: the chat decides what it means, and this process waits for it.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => chat.kill('SIGTERM'));
chat.on('error', (error) => {
  console.error(`error: cannot start ${process.execPath}: ${error.message}`);
  process.exitCode = 1;
});
chat.on('exit', (code, signal) => {
  process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0);
});
