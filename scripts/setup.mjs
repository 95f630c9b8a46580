// Shared by the other scripts: everything a fresh clone lacks, done once.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url));

export function run(command, args, options = {}) {
  const result = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
    ...options,
  });
  if (result.error) {
    if (options.throws === false) return 1;
    throw result.error;
  }
  return result.status ?? 1;
}

export function runOrExit(command, args, options) {
  const status = run(command, args, options);
  if (status !== 0) process.exit(status);
}

export function nodeTool(name, ...args) {
  return [process.execPath, [join(root, 'node_modules', ...name.split('/')), ...args]];
}

/**
 * Installs what the lock file names, unless node_modules is already newer than it. Not `npm ci`: it refuses a lock file
 * without the optional binaries of other platforms, which some mirrors do not carry.
 */
export function ensureInstalled() {
  const marker = join(root, 'node_modules', '.package-lock.json');
  const lock = join(root, 'package-lock.json');
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(lock).mtimeMs) return;
  console.error('Installing dependencies …');
  runOrExit('npm', ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund']);
}
