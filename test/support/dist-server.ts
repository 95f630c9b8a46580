// The built server on a real socket with a small random model, like an installed package.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Model } from '../../src/runtime/model.ts';
import type { ModelConfig } from '../../src/runtime/model-config.ts';
import type { SocketTimeouts } from '../../src/node/server/socket-refusals.ts';
import type { ServerOptions } from '../../src/server/app.ts';
import type { MetadataEntry } from '../../src/gguf/index.ts';
import { hasDist, importDist } from './import-dist.ts';
import { buildRandomModel } from './random-model.ts';
import { createMemoryKeys } from './test-server.ts';

export const isServerBuilt = hasDist;
if (!isServerBuilt) console.log('server tests skipped: what they import is not built, run "npm test"');

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
      importDist<typeof import('../../src/server/app.ts')>('server/app.js'),
      importDist<typeof import('../../src/runtime/requests/model-host.ts')>('runtime/requests/model-host.js'),
      importDist<typeof import('../../src/server/keys/key-store.ts')>('server/keys/key-store.js'),
      importDist<typeof import('../../src/core/clock.ts')>('core/clock.js'),
      importDist<typeof import('../../src/node/server/serve.ts')>('node/server/serve.js'),
      importDist<typeof import('../../src/index.ts')>('index.js'),
    ]);
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-server-'));
  const path = join(folder, 'random.gguf');
  const shape = { contextLength };
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape, metadata }));
  // Packed pages round: a repeated request gets the same tokens only without.
  const model = await loadModel(path, { kernels: 'wasm', numThreads: 1, kvPacking: 'off', ...config });
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
