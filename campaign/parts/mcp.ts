// Hostile JSON-RPC for `ruvllm mcp` and `POST /mcp`, and a hostile MCP server for the tools of `POST /v1/responses`. Each message must be
// answered in the protocol, the next good one too, and no process may end.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createRandom, type Random } from '../../src/core/random.ts';
import { createClock, type Part, shorten } from '../part.ts';
import { ask } from '../support/client.ts';
import { HOSTILE_ANSWERS, startHostileServer } from '../support/hostile-mcp-server.ts';
import { hostileMessage } from '../support/hostile-messages.ts';
import { createSite, kill, readHealth, type Site } from '../support/site.ts';

const COMMAND = fileURLToPath(new URL('../../bin/ruvllm.mjs', import.meta.url.replace('/.cache/tools/', '/')));
const ANSWER_LIMIT_MS = 60_000;
/** More than the 30 seconds of a list of tools. */
const REQUEST_LIMIT_MS = 40_000;
/** Code and caches that the first requests load take some. */
const MAX_GROWN_MB = 200;
const REST_LIMIT_MS = 60_000;

/** `ruvllm mcp` on its standard streams. */
interface Peer {
  /** The reply to a ping that follows these bytes; null: the process ended, or does not answer. */
  pingAfter(bytes: Uint8Array): Promise<object | null>;
  readonly errorOutput: () => string;
  end(): void;
}

function startPeer(site: Site): Peer {
  const { path, model, environment } = site.folder;
  const embedder = ['--memory-embedder', 'static', '--model', model];
  const args = [COMMAND, 'mcp', '--memory', join(path, 'mcp-memory'), ...embedder];
  const child: ChildProcess = spawn(process.execPath, args, { env: environment, stdio: 'pipe' });
  const waiting = new Map<string, (reply: object | null) => void>();
  let errorOutput = '';
  let isGone = false;
  let numPings = 0;
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (errorOutput = (errorOutput + text).slice(-2000)));
  child.stdin!.on('error', () => {}); // its end is reported by `exit`
  child.on('exit', () => {
    isGone = true;
    for (const resolve of waiting.values()) resolve(null);
  });
  createInterface({ input: child.stdout! }).on('line', (line) => {
    const reply = JSON.parse(line) as { id?: unknown };
    if (typeof reply.id === 'string') waiting.get(reply.id)?.(reply);
  });
  return {
    pingAfter(bytes) {
      if (isGone) return Promise.resolve(null);
      const id = `ping ${++numPings}`;
      const reply = new Promise<object | null>((resolve) => waiting.set(id, resolve));
      child.stdin!.write(
        Buffer.concat([bytes, Buffer.from(`\n${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n`)]),
      );
      return Promise.race([reply, sleep(ANSWER_LIMIT_MS, null, { ref: false })]).finally(() => waiting.delete(id));
    },
    errorOutput: () => errorOutput,
    end: () => void child.kill('SIGKILL'),
  };
}

const residentMegabytes = (pid: number): number | null => {
  try {
    return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024);
  } catch {
    return null; // only Linux
  }
};

/** An idle server gives memory back after a while. */
async function measureGrowth(pid: number, before: number): Promise<number | null> {
  for (let waitedMs = 0; ; waitedMs += 500) {
    const now = residentMegabytes(pid);
    if (now === null || now - before <= MAX_GROWN_MB || waitedMs >= REST_LIMIT_MS)
      return now === null ? null : now - before;
    await sleep(500);
  }
}

/** What is wrong with the answer of `POST /mcp` to a hostile message; null: nothing. */
async function post(url: string, token: string, bytes: Uint8Array): Promise<string | null> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
  const response = await fetch(`${url}/mcp`, { method: 'POST', headers, body: bytes as BodyInit, signal });
  const text = await response.text();
  // An error in our own code that was caught is a problem, too.
  const isBug = response.status >= 500 || /-32603|internal error/.test(text);
  if (isBug) return `${response.status} ${text.slice(0, 200)}`;
  if (response.status === 202) return null;
  const reply = JSON.parse(text) as { jsonrpc?: unknown; error?: { code?: unknown }; result?: unknown };
  const isReply = reply.jsonrpc === '2.0' && (reply.result !== undefined || Number.isInteger(reply.error?.code));
  return isReply && (response.status < 400 || reply.error !== undefined)
    ? null
    : `${response.status}, no JSON-RPC: ${text.slice(0, 200)}`;
}

/** What is wrong with the answer to a request that uses the hostile server of this label; null: nothing. */
async function useHostile(url: string, token: string, label: string): Promise<string | null> {
  const tools = [{ type: 'mcp', server_label: label, require_approval: 'never' }];
  const body = { model: 'm', input: 'Once', tools, tool_choice: 'required', max_output_tokens: 60 };
  const { status, text } = await ask(url, '/v1/responses', { token, body, timeoutMs: REQUEST_LIMIT_MS });
  return status === 500 || /"code":"internal_error"/.test(text) ? `${status} ${text.slice(0, 200)}` : null;
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : 'it failed');

export const mcp: Part = {
  name: 'mcp',
  summary: 'hostile messages for ruvllm mcp and POST /mcp, and a hostile MCP server',
  async run(options) {
    const clock = createClock(options, 200);
    const random: Random = createRandom(options.seed);
    const hostile = await startHostileServer(random);
    // One for each answer: the list of tools of a server is asked for once.
    const labels = HOSTILE_ANSWERS.map((_, index) => `hostile-${index}`);
    const flags = labels.flatMap((label) => ['--mcp', label]);
    const site = await createSite({ args: ({ path }) => [...flags, '--config', join(path, 'mcp.json')] });
    const settingsOf = (answer: string): object => ({ url: hostile.urlOf(answer), consent: 'allow', timeout: 10 });
    const mcpServers = Object.fromEntries(HOSTILE_ANSWERS.map((answer, index) => [labels[index], settingsOf(answer)]));
    writeFileSync(join(site.folder.path, 'mcp.json'), JSON.stringify({ mcpServers }));
    const problems: string[] = [];
    let [numCrashes, numMessages] = [0, 0];
    let peer = startPeer(site);
    try {
      const server = await site.start();
      const { url } = server;
      const token = site.tokens.alice;
      await ask(url, '/v1/completions', { token, body: { model: 'm', prompt: 'Once', max_tokens: 1 } });
      const before = residentMegabytes(server.process.pid!);
      const crash = (problem: string): void => {
        numCrashes++;
        problems.push(problem);
      };
      while (clock.next()) {
        const round = clock.rounds - 1;
        const { name, bytes } = hostileMessage(random, round);
        numMessages++;
        if ((await peer.pingAfter(bytes)) === null) {
          crash(`ruvllm mcp, ${name}: no answer afterwards (${peer.errorOutput().slice(-300)})`);
          peer.end();
          peer = startPeer(site);
        }
        const refused = await post(url, token, bytes).catch(reasonOf);
        if (refused !== null) crash(`POST /mcp, ${name}: ${refused}`);
        const index = round % HOSTILE_ANSWERS.length;
        const harm = await useHostile(url, token, labels[index]!).catch(reasonOf);
        if (harm !== null) crash(`a server with ${HOSTILE_ANSWERS[index]}: ${harm}`);
      }
      const health = await readHealth(url);
      if (health?.status !== 200 || health.degraded.length > 0) crash(`health afterwards: ${JSON.stringify(health)}`);
      if (/MaxListenersExceededWarning/.test(site.errorOutput() + peer.errorOutput()))
        problems.push('MaxListenersExceededWarning');
      const pid = server.process.pid!;
      const grown = before === null ? null : await measureGrowth(pid, before);
      if (grown !== null && grown > MAX_GROWN_MB) problems.push(`the server keeps ${grown} MB`);
      await kill(server);
      return {
        figures: {
          mcp_crashes: numCrashes,
          mcp_messages: numMessages,
          mcp_hostile_calls: hostile.numCalls(),
          mcp_grown_mb: grown,
        },
        problems: shorten(problems),
      };
    } finally {
      peer.end();
      hostile.close();
      site.dispose();
    }
  },
};
