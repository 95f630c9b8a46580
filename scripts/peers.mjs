// Installs what RuvLLM is compared with, away from our dependencies. One folder for each set: npm removes from a folder without a
// manifest what it is not asked for.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './setup.mjs';

const FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--omit=optional'];

function makeFolder(path) {
  const folder = join(root, path);
  mkdirSync(folder, { recursive: true });
  // Without a package.json of its own, npm would install into ours.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  return folder;
}

/** Returns whether node-llama-cpp can be used. Its GPU builds (700 MB) are left out, the CPU one is named. */
export function ensurePeers() {
  const folder = makeFolder('.cache/peers');
  const binary = `@node-llama-cpp/${process.platform === 'darwin' ? 'mac' : process.platform}-${process.arch}`;
  const has = (name) => existsSync(join(folder, 'node_modules', name, 'package.json'));
  if (has('node-llama-cpp') && has(binary)) return true;
  console.error('Installing node-llama-cpp to compare with …');
  return (
    run('npm', ['install', ...FLAGS, '--no-save', 'node-llama-cpp@3.22.1', `${binary}@3.22.1`], { cwd: folder }) === 0
  );
}

/**
 * Returns whether usearch and hnswlib-node can be used. The one brings a binary, the other is compiled as its own install script
 * would, with its own flags.
 */
export function ensureVectorPeers() {
  const folder = makeFolder('.cache/vector-peers');
  const has = (name) => existsSync(join(folder, 'node_modules', name));
  if (!has('usearch/package.json') || !has('hnswlib-node/package.json')) {
    console.error('Installing usearch and hnswlib-node to compare with …');
    const packages = ['usearch@2.25.3', 'hnswlib-node@3.0.0'];
    if (run('npm', ['install', ...FLAGS, '--no-save', ...packages], { cwd: folder }) !== 0) return false;
  }
  if (has('hnswlib-node/build/Release/addon.node')) return true;
  console.error('Compiling hnswlib-node …');
  return run('npm', ['rebuild', '--foreground-scripts', 'hnswlib-node'], { cwd: folder }) === 0;
}
