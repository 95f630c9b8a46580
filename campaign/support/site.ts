// The server that a campaign works on: a folder with keys of two tenants and an administrator, and one process at a time.
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  createServeFolder,
  type LaunchOptions,
  type ServeFolder,
  type ServeProcess,
} from '../../test/support/serve-process.ts';
import { ask } from './client.ts';

const modelAt = (name: string): string =>
  fileURLToPath(new URL(`../../../shared/models/${name}`, import.meta.url.replace('/.cache/tools/', '/')));
const STORIES = { '260K': modelAt('stories260K-f32.gguf'), '15M': modelAt('stories15M-q8_0.gguf') };

export const TENANTS = ['alice', 'bob'] as const;
export type Tenant = (typeof TENANTS)[number];

export interface SiteOptions {
  /** A real model of that size if the optional `shared/` folder has it; otherwise, and with `tiny`, a random one. */
  readonly model?: keyof typeof STORIES | 'tiny';
  readonly parent?: string;
  readonly args?: (folder: ServeFolder) => readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly contextLength?: number;
}

export interface Site {
  readonly folder: ServeFolder;
  readonly modelName: string;
  readonly tokens: Readonly<Record<Tenant | 'admin', string>>;
  /** Error output of all processes. */
  readonly errorOutput: () => string;
  /** Throws if it has not answered a request within `limitMs`, or ends before. */
  start(options?: LaunchOptions & { readonly limitMs?: number }): Promise<ServeProcess>;
  dispose(): void;
}

const START_LIMIT_MS = 60_000;
const MAX_OUTPUT = 1_000_000;

/** Creates the folder and the keys; starts nothing. */
export async function createSite({
  model = 'tiny',
  parent,
  args,
  environment,
  contextLength = 512,
}: SiteOptions): Promise<Site> {
  const folder = createServeFolder({
    contextLength,
    // Probes save models.
    hasOwnHub: true,
    ...(parent === undefined ? {} : { parent }),
    // The embedder of the chat model: a campaign must not download another one.
    environment: { HF_HUB_OFFLINE: '1', ...environment },
  });
  const path = model !== 'tiny' && existsSync(STORIES[model]) ? STORIES[model] : folder.model;
  const createKey = async (name: string, scope: string): Promise<string> => {
    const { token } = await folder.here.keys('create', name, '--tenant', name, '--scope', scope);
    if (token === undefined) throw new Error(`no key for ${name}`);
    return token;
  };
  const tokens = {
    alice: await createKey('alice', 'inference'),
    bob: await createKey('bob', 'inference'),
    admin: await createKey('ops', 'admin'),
  };
  let output = '';
  return {
    folder,
    modelName: 'm',
    tokens,
    errorOutput: () => output,
    async start({ prefix, onErrorOutput, limitMs = START_LIMIT_MS } = {}) {
      const launching = folder.launch(
        {
          ...(prefix === undefined ? {} : { prefix }),
          onErrorOutput(text) {
            output = (output + text).slice(-MAX_OUTPUT);
            onErrorOutput?.(text);
          },
        },
        `m=${path}`,
        '--memory-embedder',
        'static',
        ...(args?.(folder) ?? []),
      );
      const server = await Promise.race([launching, sleep(limitMs, null, { ref: false })]);
      if (server === null) {
        launching.catch(() => {});
        folder.killAll();
        throw new Error(`the server did not start within ${limitMs} ms: ${output.slice(-500)}`);
      }
      if (server.url === undefined) {
        await server.exit;
        throw new Error(`the server ended: ${JSON.stringify(server['error' as keyof ServeProcess])}`);
      }
      return server;
    },
    dispose: () => folder.dispose(),
  };
}

/** Kills it like a power failure. */
export async function kill(server: ServeProcess): Promise<void> {
  server.process.kill('SIGKILL');
  await server.exit;
}

/** The parts that the server reports as degraded; null: it does not answer. */
export async function readHealth(url: string): Promise<{ status: number; degraded: readonly string[] } | null> {
  try {
    const { status, body } = await ask(url, '/health', { timeoutMs: 10_000 });
    return { status, degraded: (body['degraded'] as string[] | undefined) ?? [] };
  } catch {
    return null;
  }
}
