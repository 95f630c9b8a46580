// The built server with the built dashboard and a real small model: what an installed package would show.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { buildRandomModel } from '../../support/random-model.ts';
import { browserPath } from './browser.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const command = join(root, 'bin/ruvllm.mjs');
const model = join(root, '../shared/models/stories15M-q8_0.gguf');

const missing = [
  existsSync(join(root, 'dist/dashboard/index.html')) ? null : 'dist/ (run "npm run build")',
  existsSync(model) ? null : '../shared/models/stories15M-q8_0.gguf',
  browserPath === null ? 'a Chromium on the PATH' : null,
].filter((one) => one !== null);

/** What is served at most by default: with these sizes longer than any test looks on, on a quick machine too. */
const ENDLESS_SHAPE = {
  numLayers: 6,
  embeddingDim: 384,
  numHeads: 12,
  numKvHeads: 4,
  headDim: 32,
  feedForwardDim: 1024,
  contextLength: 4096,
};

/** Whether these tests can run here. */
export const canRun = missing.length === 0;
if (!canRun) console.log(`dashboard tests skipped: they need ${missing.join(' and ')}`);

export interface DashboardServer extends AsyncDisposable {
  readonly url: string;
  /** Where its data lies. */
  readonly data: string;
  readonly state: string;
  /** The model's name. */
  readonly model: string;
  /** `ruvllm keys create …`: the token and the id; works before `start` and while it runs. */
  createKey(name: string, ...args: string[]): { id: string; token: string };
  revokeKey(id: string): void;
  /** Ends it, as a crash would. */
  stop(): Promise<void>;
  /** Starts it again, at the same address. */
  startAgain(): Promise<void>;
  /** A request of the test itself. */
  ask(path: string, options?: { key?: string; method?: string; body?: unknown }): Promise<Response>;
}

export interface DashboardServerOptions {
  /** Keys made before the start; without any the server is open. */
  readonly keys?: readonly { readonly name: string; readonly scopes: readonly string[] }[];
  /** Serves a second model, whose answers `answerEndlessly` asks for. */
  readonly hasEndless?: boolean;
  /** More arguments of `ruvllm serve`. */
  readonly args?: readonly string[];
}

/** Starts it, in a folder of its own; `tokens` has those of the keys, by name. */
export async function startDashboardServer(
  options: DashboardServerOptions = {},
): Promise<DashboardServer & { readonly tokens: ReadonlyMap<string, { id: string; token: string }> }> {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-dashboard-'));
  const data = join(folder, 'data');
  const state = join(folder, 'state');
  const environment = {
    ...process.env,
    RUVLLM_DATA_DIR: data,
    RUVLLM_STATE_DIR: state,
    RUVLLM_CACHE_DIR: join(folder, 'cache'),
    RUVLLM_KERNELS: 'wasm',
    RUVLLM_HOST: '',
    RUVLLM_PORT: '',
  };
  const run = (...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args, '--json'], {
      env: environment,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`ruvllm ${args.join(' ')} ended with ${status}: ${stderr}`);
    return stdout;
  };
  const createKey: DashboardServer['createKey'] = (name, ...args) =>
    JSON.parse(run('keys', 'create', name, ...args)) as { id: string; token: string };
  const tokens = new Map<string, { id: string; token: string }>();
  for (const { name, scopes } of options.keys ?? []) {
    tokens.set(name, createKey(name, '--tenant', 'team', ...scopes.flatMap((scope) => ['--scope', scope])));
  }
  const args = [...(options.args ?? [])];
  if (options.hasEndless === true) {
    const path = join(folder, 'endless.gguf');
    writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape: ENDLESS_SHAPE }));
    args.push(`endless=${path}`);
  }
  const start = (port: string): ChildProcess =>
    spawn(process.execPath, [command, 'serve', model, ...args, '--port', port, '--json'], {
      env: environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  let child = start('0');
  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
  const { url, models } = JSON.parse(await firstLine(child)) as { url: string; models: string[] };
  return {
    url: `${url}/`,
    data,
    state,
    model: models[0]!,
    tokens,
    createKey,
    revokeKey: (id) => void run('keys', 'revoke', id),
    stop,
    async startAgain() {
      child = start(new URL(url).port);
      await firstLine(child);
    },
    ask: (path, { key, method = 'GET', body } = {}) =>
      fetch(url + path, {
        method,
        headers: {
          ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The page's next answers have no end that a test could meet, however quick the machine is; until it is taken back. */
export async function answerEndlessly(page: Page): Promise<() => Promise<void>> {
  const place = '**/v1/chat/completions';
  await page.route(place, (route) => {
    const body = route.request().postDataJSON() as object;
    const more = { model: 'endless', ignore_eos: true, max_tokens: ENDLESS_SHAPE.contextLength - 500 };
    return route.continue({ postData: JSON.stringify({ ...body, ...more }) });
  });
  return () => page.unroute(place);
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout!.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      if (text.includes('\n')) resolve(text);
    });
    child.once('exit', (code) => reject(new Error(`ruvllm serve ended with ${code}: ${text}`)));
  });
}
