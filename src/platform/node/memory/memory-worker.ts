// The memory's thread: started by spawn-memory.ts, ended by it.
import * as files from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { assert, RuvLLMError, serializeError } from '../../../core/errors.ts';
import { createObjectServer } from '../../../memory/remote/object-server.ts';
import type { RemoteCall, RemoteEmbedder, RemoteObjects } from '../../../memory/remote/protocol.ts';
import { createVectorIndex, type VectorIndexOptions } from '../../../memory/vector-index/index.ts';
import { createKernelFactory } from '../kernel-factory.ts';
import { openArchiveFiles } from './archive-files.ts';
import { openIndexFiles } from './index-files.ts';
import type { MemoryFolder } from './memory-folder.ts';
import { openModelEmbedder } from './model-embedder.ts';
import { openMemoryStore } from './open-memory-store.ts';
import type { MemoryWorkerData, MemoryWorkerMessage } from './spawn-memory.ts';

const port = parentPort;
assert(port !== null, 'memory-worker runs as a worker thread');
const post = (message: MemoryWorkerMessage): void => port.postMessage(message);
const report = (message: string): void => post({ type: 'report', message });

/** Made at the first text: most commands need none, and a vocabulary takes a second to read. */
function createEmbedder(modelPath: string | null): RemoteEmbedder {
  let opened: ReturnType<typeof openModelEmbedder> | null = null;
  const open = (path: string): ReturnType<typeof openModelEmbedder> => (opened ??= openModelEmbedder(path));
  return {
    async describe() {
      if (modelPath === null) return null;
      const { fingerprint, dim } = open(modelPath);
      return { fingerprint, dim };
    },
    async embed(text) {
      if (modelPath === null) throw new RuvLLMError('unsupported', 'the memory has no model to embed with');
      return open(modelPath).embed(text);
    },
  };
}

async function open({ place, masterKey, modelPath }: MemoryWorkerData): Promise<RemoteObjects> {
  if ('postgres' in place) {
    const { openPostgresMemory } = await import('./postgres.ts');
    const { archive, rotateMasterKey, ...store } = await openPostgresMemory({ connectionString: place.postgres, masterKey }); // prettier-ignore
    return { store, archive, embedder: createEmbedder(modelPath), keys: { rotate: rotateMasterKey } };
  }
  const kernels = await createKernelFactory('auto', {
    numThreads: 1,
    types: [],
    warn: ({ message }) => report(message),
  });
  // Long builds let calls through that wait.
  const pause = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
  const indexOptions = (dim: number): VectorIndexOptions => ({ kernels, dim, storage: 'int8', pause });
  let folder: MemoryFolder | null = null;
  const { store, rotateMasterKey } = openMemoryStore({
    folder: place.folder,
    masterKey,
    createIndex: (dim) => createVectorIndex(indexOptions(dim)),
    openIndexFiles(opened) {
      folder = opened;
      return openIndexFiles({ folder: place.folder, files, sealingKeyOf: opened.sealingKeyOf, indexOptions });
    },
    report,
  });
  assert(folder !== null, 'the folder is opened with the store');
  const { keys } = folder as MemoryFolder;
  return {
    store,
    archive: openArchiveFiles(files, place.folder, keys),
    embedder: createEmbedder(modelPath),
    keys: { rotate: async (to) => rotateMasterKey(to) },
  };
}

try {
  const objects = await open(workerData as MemoryWorkerData);
  const serve = createObjectServer(objects, (reply) => post({ type: 'reply', reply }));
  port.on('message', (call: RemoteCall) => serve(call));
  post({ type: 'opened' });
} catch (error) {
  post({ type: 'failed', error: serializeError(error) });
}
