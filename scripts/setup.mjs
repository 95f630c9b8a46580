// Shared by the other scripts: completes a fresh clone once.
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findMissingPlatformPackages } from './platform-packages.mjs';
import { installArchive } from './supply-chain/pinned.mjs';

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

/** Ends the process with one sentence if a folder is not writable; npm and tsc would print a stack trace. */
export function requireWritable(folder, purpose) {
  const path = join(root, folder);
  try {
    accessSync(existsSync(path) ? path : root, constants.W_OK);
  } catch (error) {
    console.error(
      `error: ${path} cannot be written (${error.code}), and ${purpose}\n` +
        'next: make it writable for this user, or work in a copy of the folder',
    );
    process.exit(1);
  }
}

const INSTALL = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];

/**
 * Installs the locked packages unless node_modules is newer. Not `npm ci`: it rejects a lock file without the optional binaries of
 * other platforms, which some mirrors lack.
 */
export function ensureInstalled() {
  const marker = join(root, 'node_modules', '.package-lock.json');
  const lock = join(root, 'package-lock.json');
  if (!existsSync(marker) || statSync(marker).mtimeMs < statSync(lock).mtimeMs) {
    requireWritable('node_modules', 'the dependencies must be installed there');
    console.error('Installing dependencies …');
    if (run('npm', INSTALL) !== 0) {
      console.error(
        'error: npm could not install the dependencies; its message is above\n' +
          'next: check the registry (npm ping) and that this folder is writable, then run the same command again',
      );
      process.exit(1);
    }
  }
  ensurePlatformPackages();
}

/** Checked each time: node_modules may come from another machine, or from a lock file without this platform's binaries. */
export function ensurePlatformPackages({ folder = root, platform, pins } = {}) {
  const missing = findMissingPlatformPackages(folder, platform);
  if (missing.length === 0) return;
  console.error(`Installing ${missing.map(({ name, version }) => `${name}@${version}`).join(', ')} …`);
  for (const { name, version, owner } of missing) {
    const problem = installArchive(`${name}@${version}`, join(folder, 'node_modules', name), pins);
    if (problem !== null) console.error(`${owner} cannot run here without its binary ${name}@${version}: ${problem}`);
  }
}
