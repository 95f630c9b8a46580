// Installs the peers of comparisons apart from our dependencies. One folder per set: npm removes unrequested packages from a folder.
import { existsSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root, run } from './setup.mjs';
import { installSet } from './supply-chain/pinned.mjs';

/** Whether the packages are in the folder; installs the set if one is missing. */
function ensureSet(set, folder, packages, purpose) {
  const hasAll = () => packages.every((name) => existsSync(join(folder, 'node_modules', name, 'package.json')));
  if (hasAll()) return true;
  console.error(`Installing ${packages[0]} ${purpose} …`);
  return installSet(set, folder) && hasAll();
}

const PEERS = join(root, '.cache/peers');
const COMPARED = 'to compare with';

/** Whether node-llama-cpp is available, with its build for processors. */
export function ensurePeers() {
  const platform = { darwin: 'mac', win32: 'win' }[process.platform] ?? process.platform;
  return ensureSet('peers', PEERS, ['node-llama-cpp', `@node-llama-cpp/${platform}-${process.arch}`], COMPARED);
}

/** Whether wllama is available: llama.cpp in WebAssembly, for pages. */
export const ensureBrowserPeers = () =>
  ensureSet('browser-peers', join(root, '.cache/browser-peers'), ['@wllama/wllama'], COMPARED);

/** Whether WebGPU for Node is available. Not a dependency, because it has an install script, which is not run here. */
export function ensureWebGpu() {
  const folder = join(root, '.cache/webgpu');
  const [installed, linked] = [join(folder, 'node_modules/webgpu'), join(root, 'node_modules/webgpu')];
  if (!ensureSet('webgpu', folder, ['webgpu'], 'to test its kernels')) return false;
  if (!existsSync(linked)) {
    rmSync(linked, { force: true }); // a link to a folder that is gone
    symlinkSync(installed, linked, 'junction');
  }
  return true;
}

/** Whether node-llama-cpp's Vulkan build is available; it exists for x64 only, apart from the CPU build. */
export const ensureVulkanPeer = () =>
  ensureWebGpu() && ensureSet('vulkan', PEERS, ['node-llama-cpp', '@node-llama-cpp/linux-x64-vulkan'], COMPARED);

/** Whether usearch and hnswlib-node are available. The first has a binary, the second is compiled like its install script does. */
export function ensureVectorPeers() {
  const folder = join(root, '.cache/vector-peers');
  if (!ensureSet('vector-peers', folder, ['usearch', 'hnswlib-node'], COMPARED)) return false;
  if (existsSync(join(folder, 'node_modules/hnswlib-node/build/Release/addon.node'))) return true;
  console.error('Compiling hnswlib-node …');
  return run('npm', ['rebuild', '--foreground-scripts', 'hnswlib-node'], { cwd: folder }) === 0;
}

/** Whether the public conformance suite of MCP is available: the newest version that runs on Node 20. */
export const ensureMcpConformance = () =>
  ensureSet(
    'mcp-conformance',
    join(root, '.cache/mcp-conformance'),
    ['@modelcontextprotocol/conformance'],
    'to run it',
  );

/** Whether the bundler of declarations is available, which only publishing needs. */
export const ensureDeclarationBundler = () =>
  ensureSet('dts', join(root, '.cache/dts'), ['rolldown-plugin-dts', 'rolldown'], 'to bundle declarations');
