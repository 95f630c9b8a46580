// npm run bench -- TOPIC [options]: runs bench/TOPIC.bench.ts.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ensureClients } from './clients.mjs';
import { ensureBrowserPeers, ensurePeers, ensureVectorPeers, ensureVulkanPeer } from './peers.mjs';
import { ensureInstalled, root } from './setup.mjs';
import { runTool } from './tools.mjs';

const hasClients = async () => (await ensureClients()) === 'ready';
const PEERS = {
  browser: ensureBrowserPeers,
  clients: hasClients,
  engine: ensurePeers,
  models: ensurePeers,
  memory: ensureVectorPeers,
  webgpu: ensureVulkanPeer,
};
const topics = readdirSync(join(root, 'bench'))
  .filter((file) => file.endsWith('.bench.ts'))
  .map((file) => file.slice(0, -'.bench.ts'.length));
const [topic, ...args] = process.argv.slice(2);
if (!topics.includes(topic)) {
  console.error(`usage: npm run bench -- TOPIC, one of: ${topics.join(', ')}`);
  process.exit(2);
}
ensureInstalled();
if (PEERS[topic] !== undefined && !(await PEERS[topic]())) process.exit(1);
process.exitCode = await runTool(`bench/${topic}.bench.ts`, args);
