// Runs the built server with the built dashboard and a small real model, like an installed package.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { buildRandomModel } from '../../support/random-model.ts';
import { browserPath } from './browser.ts';

// Benchmarks run a compiled copy of this file in .cache/tools.
const root = fileURLToPath(new URL('../../..', import.meta.url.replace('/.cache/tools/', '/')));
const command = join(root, 'bin/ruvllm.mjs');
const model = join(root, '../shared/models/stories15M-q8_0.gguf');

const missing = [
  existsSync(join(root, 'dist/dashboard/index.html')) ? null : 'dist/ (run "npm run build")',
  existsSync(model) ? null : '../shared/models/stories15M-q8_0.gguf',
  browserPath === null ? 'a Chromium on the PATH' : null,
].filter((item) => item !== null);

/** Large enough that a full-length answer outlasts every test, even on a fast machine. */
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
  readonly data: string;
  readonly state: string;
  /** The name of the first model; undefined without one. */
  readonly model: string;
  /** Runs `ruvllm keys create …`, also while the server is running. */
  createKey(name: string, ...args: string[]): { id: string; token: string };
  revokeKey(id: string): void;
  /** Kills the server, like a crash. */
  stop(): Promise<void>;
  restart(): Promise<void>;
  /** Sends a request directly from the test. */
  ask(path: string, options?: { key?: string; method?: string; body?: unknown }): Promise<Response>;
}

export interface DashboardServerOptions {
  /** API keys created before the start; without any the server is open. */
  readonly keys?: readonly { readonly name: string; readonly scopes: readonly string[] }[];
  /** Serves a second model for `answerEndlessly`. */
  readonly hasEndless?: boolean;
  /** Whether a model is served; default: true. */
  readonly hasModel?: boolean;
  /** The file of the model; default: a small real one. */
  readonly modelPath?: string;
  /** Environment variables of the server. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Additional arguments of `ruvllm serve`. */
  readonly args?: readonly string[];
}

/** Starts the server in a temporary folder; `tokens` holds the created keys by name. */
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
    ...options.environment,
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
    spawn(
      process.execPath,
      [command, 'serve', options.hasModel === false ? '--no-model' : (options.modelPath ?? model), ...args, '--port', port, '--json'], // prettier-ignore
      {
        env: environment,
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
  let child = start('0');
  async function stop(): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await exit;
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
    async restart() {
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

/** Makes the page's answers practically endless, until the returned function is called. */
export async function answerEndlessly(page: Page): Promise<() => Promise<void>> {
  const pattern = '**/v1/chat/completions';
  await page.route(pattern, (route) => {
    const body = route.request().postDataJSON() as object;
    const overrides = { model: 'endless', ignore_eos: true, max_tokens: ENDLESS_SHAPE.contextLength - 500 };
    return route.continue({ postData: JSON.stringify({ ...body, ...overrides }) });
  });
  return () => page.unroute(pattern);
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
