// npm run check:mcp: the public conformance suite of MCP against the built server and client, as far as its scenarios are about tools.
// Its other scenarios need resources, prompts, sampling, elicitation, OAuth or tools with fixed names, which this project does not have.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureMcpConformance } from './peers.mjs';
import { root } from './setup.mjs';

const SERVER_SCENARIOS = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];
const CLIENT_SCENARIOS = ['initialize', 'tools_call'];

/** Resolves to the address that the server prints when it is ready. */
function startServer(folder) {
  const args = ['bin/ruvllm.mjs', 'serve', '--port', '0', '--no-dashboard', '--memory', join(folder, 'memory')];
  const env = { ...process.env, XDG_DATA_HOME: folder, HOME: folder, HF_HUB_OFFLINE: '1' }; // words are enough
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const url = new Promise((resolve, reject) => {
    let text = '';
    child.stderr.on('data', (chunk) => {
      text += chunk;
      const found = /ready: OpenAI-compatible API at (\S+)\/v1/.exec(text);
      if (found !== null) resolve(found[1]);
    });
    child.on('exit', (code) => reject(new Error(`the server exited with ${code}: ${text}`)));
  });
  return { child, url };
}

function runSuite(folder, args) {
  const suite = join(root, '.cache/mcp-conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, [suite, ...args], { cwd: folder, encoding: 'utf8' });
  if (status !== 0) console.error(`${stdout}${stderr}`);
  return status === 0;
}

if (!ensureMcpConformance()) throw new Error('the conformance suite could not be installed');
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-mcp-'));
const results = [];
const { child, url } = startServer(folder);
try {
  const base = await url;
  for (const scenario of SERVER_SCENARIOS) {
    results.push([`server ${scenario}`, runSuite(folder, ['server', '--url', `${base}/mcp`, '--scenario', scenario])]);
  }
  const client = `${process.execPath} ${join(root, 'scripts/mcp-conformance-client.mjs')}`;
  for (const scenario of CLIENT_SCENARIOS) {
    results.push([`client ${scenario}`, runSuite(folder, ['client', '--command', client, '--scenario', scenario])]);
  }
} finally {
  child.removeAllListeners('exit');
  child.kill();
  rmSync(folder, { recursive: true, force: true });
}
for (const [name, isOk] of results) console.log(`${isOk ? 'ok    ' : 'FAILED'} ${name}`);
const numFailed = results.filter(([, isOk]) => !isOk).length;
console.log(`${results.length - numFailed} passed, ${numFailed} failed`);
process.exitCode = numFailed === 0 ? 0 : 1;
