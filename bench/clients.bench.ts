// Clients of other servers, pointed at this one: the contract tests as a count, the cached share of a coding agent's session, and
// structured output.
//   npm run bench -- clients
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { agentRequests, cachedShare, replaySession } from '../test/support/agent-session.ts';
import { startDistServer } from '../test/support/dist-server.ts';
import { measureStructuredOutput } from './support/masks.ts';
import { printTable } from './support/report.ts';

const TESTS = ['test/clients', 'test/server/client-habits', 'test/server/tool-clients', 'test/server/other-clients', 'test/server/openai-client', 'test/server/anthropic-client', 'test/server/responses-client']; // prettier-ignore

/** llama-server's routes, after its documentation. */
const LLAMA_SERVER_TESTS = ['test/server/llama-server-'];

interface Report {
  readonly numTotalTests: number;
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly status: string }[];
  }[];
}

/** Runs the contract tests and counts them by file. */
function runTests(tests: readonly string[]): Report {
  const path = join('.cache', 'client-report.json');
  const options = ['run', '--reporter=json', `--outputFile=${path}`, ...tests];
  spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', ...options], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return JSON.parse(readFileSync(path, 'utf8')) as Report;
}

/** The share over a first session and its replay, without the very first request, of which nothing can be cached. */
async function measureAgent() {
  await using server = await startDistServer({ contextLength: 16_384 }, { maxContext: 8192, kvCacheTokens: 32_768 });
  const client = new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
  const first = await replaySession(client, agentRequests(1, 'random'));
  const replay = await replaySession(client, agentRequests(2, 'random'));
  const later = first.slice(1);
  return { later: cachedShare(later), replay: cachedShare(replay), all: cachedShare([...later, ...replay]) };
}

const report = runTests(TESTS);
const llamaServer = runTests(LLAMA_SERVER_TESTS);
printTable([
  ['clients', 'checks', 'passed'],
  ...[...report.testResults, ...llamaServer.testResults].map(({ name, assertionResults }) => [
    name.replace(/^.*\/test\//, ''),
    String(assertionResults.length),
    String(assertionResults.filter(({ status }) => status === 'passed').length),
  ]),
]);
const agent = await measureAgent();
printTable([
  ["a coding agent's prompt tokens", 'cached'],
  ['first session, from its second request', agent.later.toFixed(4)],
  ['replay with other billing lines', agent.replay.toFixed(4)],
]);
console.log(
  JSON.stringify({
    client_checks_passed: report.numPassedTests,
    client_checks: report.numTotalTests,
    llama_server_cases_passed: llamaServer.numPassedTests,
    llama_server_cases: llamaServer.numTotalTests,
    agent_cached_share: Number(agent.all.toFixed(4)),
    ...measureStructuredOutput(),
  }),
);
