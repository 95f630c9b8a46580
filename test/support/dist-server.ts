// The built server on a real socket with a small random model, like an installed package.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Model } from '../../src/runtime/model.ts';
import type { ModelConfig } from '../../src/runtime/model-config.ts';
import type { SocketTimeouts } from '../../src/node/server/socket-refusals.ts';
import type { ServerOptions } from '../../src/server/app.ts';
import type { MetadataEntry } from '../../src/gguf/index.ts';
import { buildRandomModel } from './random-model.ts';
import { createMemoryKeys } from './test-server.ts';

/** Benchmarks run this file from .cache/tools/test/support. */
const root = import.meta.url.includes('/.cache/tools/') ? '../../' : '../../.cache/tools/';
const dist = fileURLToPath(new URL(`${root}src`, import.meta.url));
export const isServerBuilt = existsSync(join(dist, 'server/app.js'));
if (!isServerBuilt) console.log('server tests skipped: the modules are not transpiled, run "npm test"');

// Everything from there: a class of the sources is not the class of these modules.
const load = async <T>(path: string): Promise<T> => (await import(pathToFileURL(join(dist, path)).href)) as T;

export interface DistServer extends AsyncDisposable {
  readonly url: string;
  readonly model: Model;
}

/** Starts it; the model is `random` with the alias `gpt-4o-mini`. */
export async function startDistServer(
  options: Partial<ServerOptions> & {
    timeouts?: SocketTimeouts;
    contextLength?: number;
    metadata?: readonly MetadataEntry[];
  } = {},
  config: ModelConfig = {},
): Promise<DistServer> {
  const { timeouts, contextLength = 512, metadata = [], ...more } = options;
  const [{ createServer }, { createModelHost }, { createKeyStore }, { systemClock }, { listen }, { loadModel }] =
    await Promise.all([
      load<typeof import('../../src/server/app.ts')>('server/app.js'),
      load<typeof import('../../src/runtime/requests/model-host.ts')>('runtime/requests/model-host.js'),
      load<typeof import('../../src/server/keys/key-store.ts')>('server/keys/key-store.js'),
      load<typeof import('../../src/core/clock.ts')>('core/clock.js'),
      load<typeof import('../../src/node/server/serve.ts')>('node/server/serve.js'),
      load<typeof import('../../src/index.ts')>('index.js'),
    ]);
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-server-'));
  const path = join(folder, 'random.gguf');
  const shape = { contextLength };
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape, metadata }));
  const model = await loadModel(path, { kernels: 'wasm', numThreads: 1, ...config });
  const entry = { id: 'random', aliases: ['gpt-4o-mini'], created: 1_700_000_000, sizeBytes: null };
  const server = createServer({
    version: '0.0.0',
    models: createModelHost({
      entries: [{ ...entry, load: async () => model }],
      budgetBytes: null,
      clock: systemClock,
    }),
    keys: createKeyStore(createMemoryKeys(), () => Date.now()),
    isOpen: true,
    browsers: { hosts: ['127.0.0.1'], corsOrigins: [] },
    ...more,
  });
  const listening = await listen(server, {
    host: '127.0.0.1',
    port: 0,
    ...(timeouts === undefined ? {} : { timeouts }),
  });
  return {
    url: listening.url,
    model,
    async [Symbol.asyncDispose]() {
      await listening.close(5000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
