// Runs the built server with the built dashboard and a small real model, like an installed package.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { buildRandomModel } from '../../support/random-model.ts';
import { KEPT } from '../../support/temporary-root.ts';
import { browserPath } from './browser.ts';

// Benchmarks run a compiled copy of this file in .cache/tools.
const root = fileURLToPath(new URL('../../..', import.meta.url.replace('/.cache/tools/', '/')));
const command = join(root, 'bin/ruvllm.mjs');
const preload = pathToFileURL(join(root, 'test/dashboard/support/end-with-parent.mjs')).href;
const TINY = join(root, '../shared/models/stories260K-f32.gguf');
/** A real model that is sixty times as large as the default one. */
export const STORIES = join(root, '../shared/models/stories15M-q8_0.gguf');

const missing = [
  existsSync(join(root, 'dist/dashboard/index.html')) ? null : 'dist/ (run "npm run build")',
  ...[TINY, STORIES].map((path) => (existsSync(path) ? null : `../shared/models/${basename(path)}`)),
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

export interface Key {
  readonly id: string;
  readonly token: string;
}

/** A server that others may use, too. */
export interface SharedDashboardServer {
  readonly url: string;
  readonly data: string;
  readonly state: string;
  /** The name of the first model; undefined without one. */
  readonly model: string;
  readonly tokens: ReadonlyMap<string, Key>;
  createKey(name: string, tenant: string, scopes: readonly string[]): Promise<Key>;
  revokeKey(id: string): Promise<void>;
  /** Sends a request directly from the test. */
  ask(path: string, options?: { key?: string; method?: string; body?: unknown }): Promise<Response>;
}

export interface DashboardServer extends SharedDashboardServer, AsyncDisposable {
  /** Kills the server, like a crash. */
  stop(): Promise<void>;
  restart(): Promise<void>;
}

export interface DashboardServerOptions {
  /** Scopes of API keys by their name, for the tenant `team`; without any the server is open. */
  readonly keys?: Readonly<Record<string, readonly string[]>>;
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

/** Starts the server in a temporary folder. It ends with this process. */
export function startDashboardServer(options: DashboardServerOptions = {}): Promise<DashboardServer> {
  return startIn(mkdtempSync(join(tmpdir(), 'ruvllm-dashboard-')), options);
}

async function startIn(folder: string, options: DashboardServerOptions): Promise<DashboardServer> {
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
    RUVLLM_TEST_FOLDER: folder,
    ...options.environment,
  };
  const args = [...(options.args ?? [])];
  if (options.hasEndless === true) {
    const path = join(folder, 'endless.gguf');
    writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape: ENDLESS_SHAPE }));
    args.push(`endless=${path}`);
  }
  const start = (port: string): ChildProcess =>
    spawn(
      process.execPath,
      ['--import', preload, command, 'serve', options.hasModel === false ? '--no-model' : (options.modelPath ?? TINY), ...args, '--port', port, '--json'], // prettier-ignore
      {
        env: environment,
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
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
  const ask: DashboardServer['ask'] = (path, { key, method = 'GET', body } = {}) =>
    fetch(url + path, {
      method,
      headers: {
        ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  let admin: string | undefined;
  const createKey: DashboardServer['createKey'] = async (name, tenant, scopes) => {
    const options = { method: 'POST', body: { name, tenant, scopes }, ...(admin === undefined ? {} : { key: admin }) };
    const response = await ask('/admin/keys', options);
    if (response.status !== 201) throw new Error(`key ${name}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Key;
  };
  const tokens = new Map<string, Key>();
  if (options.keys !== undefined) {
    admin = (await createKey('setup', 'setup', ['admin'])).token;
    for (const [name, scopes] of Object.entries(options.keys)) tokens.set(name, await createKey(name, 'team', scopes));
  }
  return {
    url: `${url}/`,
    data,
    state,
    model: models[0]!,
    tokens,
    createKey,
    async revokeKey(id) {
      const { status } = await ask(`/admin/keys/${id}`, { method: 'DELETE', ...(admin === undefined ? {} : { key: admin }) }); // prettier-ignore
      if (status !== 200) throw new Error(`key ${id} was not revoked: ${status}`);
    },
    stop,
    async restart() {
      child = start(new URL(url).port);
      await firstLine(child);
    },
    ask,
    async [Symbol.asyncDispose]() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const SHARED = {
  /** With memory and learning, and the second model of `answerEndlessly`. */
  open: { hasEndless: true },
  bare: { args: ['--no-memory'] },
  /** With memory and learning; `sharedTenant` makes its keys. */
  closed: { keys: {} },
} as const satisfies Readonly<Record<string, DashboardServerOptions>>;
const kept = new Map<keyof typeof SHARED, Promise<DashboardServer>>();

/** An open server that the test files of this process share: what they store stays, and none of them stops it. */
export function sharedDashboardServer(kind: keyof typeof SHARED): Promise<DashboardServer> {
  const server = kept.get(kind) ?? startIn(mkdtempSync(join(tmpdir(), `${KEPT}dashboard-`)), SHARED[kind]);
  kept.set(kind, server);
  return server;
}

/** A server that requires keys, which the test files of this process share; these keys are of a tenant that only the caller uses. */
export async function sharedTenant(
  tenant: string,
  keys: NonNullable<DashboardServerOptions['keys']>,
): Promise<SharedDashboardServer> {
  const server = await sharedDashboardServer('closed');
  const tokens = new Map<string, Key>();
  for (const [name, scopes] of Object.entries(keys)) tokens.set(name, await server.createKey(name, tenant, scopes));
  return { ...server, tokens };
}

/** Makes the page's answers practically endless, until the returned function is called. */
export const answerEndlessly = (page: Page): Promise<() => Promise<void>> =>
  override(page, { model: 'endless', ignore_eos: true, max_tokens: ENDLESS_SHAPE.contextLength - 500 });

/** Makes the page's answers short: without a limit the model fills its context, which takes seconds. */
export const answerBriefly = (page: Page): Promise<() => Promise<void>> => override(page, { max_tokens: 8 });

async function override(page: Page, fields: object): Promise<() => Promise<void>> {
  const pattern = '**/v1/chat/completions';
  await page.route(pattern, (route) => {
    const body = route.request().postDataJSON() as object;
    return route.continue({ postData: JSON.stringify({ ...body, ...fields }) });
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
