// Installs the peers of comparisons apart from our dependencies. One folder per set: npm removes unrequested packages from a folder
// without a manifest.
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './setup.mjs';

const FLAGS = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock', '--omit=optional'];

/** A folder for packages of its own. */
export function makeFolder(path) {
  const folder = join(root, path);
  mkdirSync(folder, { recursive: true });
  // Without a package.json, npm would install into ours.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  return folder;
}

/** Whether node-llama-cpp is available. Omits its GPU builds (700 MB) and names the CPU one. */
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

/** Whether wllama is available: llama.cpp in WebAssembly, for pages. */
export function ensureBrowserPeers() {
  const folder = makeFolder('.cache/browser-peers');
  if (existsSync(join(folder, 'node_modules/@wllama/wllama/package.json'))) return true;
  console.error('Installing @wllama/wllama to compare with …');
  return run('npm', ['install', ...FLAGS, '--no-save', '@wllama/wllama@3.8.1'], { cwd: folder }) === 0;
}

/** Whether WebGPU for Node is available. Not a dependency, because it has an install script, which is not run here. */
export function ensureWebGpu() {
  const folder = makeFolder('.cache/webgpu');
  const [installed, linked] = [join(folder, 'node_modules/webgpu'), join(root, 'node_modules/webgpu')];
  if (!existsSync(join(installed, 'package.json'))) {
    console.error('Installing webgpu to test its kernels …');
    if (run('npm', ['install', ...FLAGS, '--no-save', 'webgpu@0.6.2'], { cwd: folder }) !== 0) return false;
  }
  if (!existsSync(linked)) {
    rmSync(linked, { force: true }); // a link to a folder that is gone
    symlinkSync(installed, linked, 'junction');
  }
  return true;
}

/** Whether node-llama-cpp's Vulkan build is available; it exists for x64 only, apart from the CPU build. */
export function ensureVulkanPeer() {
  if (!ensureWebGpu()) return false;
  const folder = makeFolder('.cache/peers');
  const binary = '@node-llama-cpp/linux-x64-vulkan';
  const has = (name) => existsSync(join(folder, 'node_modules', name, 'package.json'));
  if (has('node-llama-cpp') && has(binary)) return true;
  console.error('Installing the Vulkan build of node-llama-cpp to compare with …');
  const packages = ['node-llama-cpp@3.22.1', `${binary}@3.22.1`];
  return run('npm', ['install', ...FLAGS, '--no-save', ...packages], { cwd: folder }) === 0;
}

/** Whether usearch and hnswlib-node are available. The first has a binary, the second is compiled like its install script does. */
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

/** Whether the public conformance suite of MCP is available: the newest version that runs on Node 20. */
export function ensureMcpConformance() {
  const folder = makeFolder('.cache/mcp-conformance');
  if (existsSync(join(folder, 'node_modules/@modelcontextprotocol/conformance/package.json'))) return true;
  console.error('Installing the conformance suite of MCP …');
  return (
    run('npm', ['install', ...FLAGS, '--no-save', '@modelcontextprotocol/conformance@0.1.13'], { cwd: folder }) === 0
  );
}
