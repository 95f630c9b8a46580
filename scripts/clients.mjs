// Installs the clients of the contract tests into test/clients/, apart from our dependencies.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { askRegistry } from './registry.mjs';
import { root } from './setup.mjs';

const folder = join(root, 'test/clients');
const FLAGS = ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--omit=optional'];

function isInstalled() {
  const marker = join(folder, 'node_modules/.package-lock.json');
  return existsSync(marker) && statSync(marker).mtimeMs >= statSync(join(folder, 'package-lock.json')).mtimeMs;
}

/** Resolves to `ready`, `failed`, or `unreachable` if the registry does not answer: then the tests of clients are skipped. */
export async function ensureClients() {
  if (isInstalled()) return 'ready';
  console.error('Installing the clients of the contract tests …');
  const status = await new Promise((resolve) => {
    const child = spawn('npm', FLAGS, {
      cwd: folder,
      stdio: ['ignore', 'ignore', 'inherit'],
      shell: process.platform === 'win32',
    });
    child.on('error', () => resolve(1));
    child.on('close', resolve);
  });
  if (status === 0) return 'ready';
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const [answer] = await askRegistry([Object.entries(dependencies)[0].join('@')]);
  return answer.state === 'unreachable' ? 'unreachable' : 'failed';
}
