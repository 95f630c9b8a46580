// The memory's thread: started by spawn-memory.ts, ended by it.
import { createHash } from 'node:crypto';
import * as files from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { assert, RuvLLMError, serializeError } from '../../core/errors.ts';
import { createObjectServer } from '../../memory/remote/remote-objects.ts';
import type { RemoteCall } from '../../core/remote-calls.ts';
import {
  REMOTE_METHODS,
  type RemoteEmbedder,
  type RemoteFinder,
  type RemoteObjects,
} from '../../memory/remote/protocol.ts';
import { withBuilders } from '../../memory/record-builders.ts';
import type { MemoryStore } from '../../memory/types.ts';
import { openArchiveFiles } from '../../platform/node/memory/archive-files.ts';
import { openIndexFiles } from '../../platform/node/memory/index-files.ts';
import type { MemoryFolder } from '../../platform/node/memory/memory-folder.ts';
import { openMemoryStore } from './open-memory-store.ts';
import type { MemoryWorkerData, MemoryWorkerMessage } from './spawn-memory.ts';

const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();
const port = parentPort;
assert(port !== null, 'memory-worker runs as a worker thread');
const post = (message: MemoryWorkerMessage): void => port.postMessage(message);
const report = (message: string): void => post({ type: 'report', message });

/** Creates it on the first call, and again after a failure. */
function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    }));
}

/** Loads the model at the first text: most commands need none, and a vocabulary takes a second. */
function createEmbedder(modelPath: string | null): RemoteEmbedder {
  if (modelPath === null) {
    return {
      describe: () => Promise.resolve(null),
      embed: () => Promise.reject(new RuvLLMError('unsupported', 'the memory has no model to embed with')),
    };
  }
  const opened = lazily(async () => (await import('./table-embedder.ts')).openTableEmbedder(modelPath));
  return {
    async describe() {
      const { fingerprint, dim } = await opened();
      return { fingerprint, dim };
    },
    async embed(text) {
      return (await opened()).embed(text);
    },
  };
}

/** Loads its code at the first search. */
function createFinder(store: MemoryStore): RemoteFinder {
  const made = lazily(async () => (await import('./store-finder.ts')).createStoreFinder(store));
  return {
    search: async (...given) => (await made()).search(...given),
    ask: async (...given) => (await made()).ask(...given),
  };
}

interface Opened {
  readonly objects: RemoteObjects;
  /** Why the store cannot be reached. */
  readonly unavailable: RuvLLMError | null;
}

async function openPostgres(place: string, { masterKey, modelPath }: MemoryWorkerData): Promise<Opened> {
  const embedder = createEmbedder(modelPath);
  try {
    const { openPostgresMemory } = await import('../../platform/node/memory/postgres.ts');
    const { archive, rotateMasterKey, ...store } = await openPostgresMemory({ connectionString: place, masterKey });
    const finder = createFinder(store);
    return {
      objects: { store: withBuilders(store, sha256), archive, embedder, finder, keys: { rotate: rotateMasterKey } },
      unavailable: null,
    };
  } catch (error) {
    // A wrong password or key must be corrected; an unreachable server may come back.
    if (!(error instanceof RuvLLMError) || error.data['isConnectionLost'] !== true) throw error;
    return { objects: createUnavailable(embedder, error), unavailable: error };
  }
}

/** Embeds texts; everything else fails with the error of the opening. */
function createUnavailable(embedder: RemoteEmbedder, error: RuvLLMError): RemoteObjects {
  const refuseAll = <O extends 'store' | 'archive' | 'keys'>(object: O): RemoteObjects[O] =>
    Object.fromEntries(
      Object.keys(REMOTE_METHODS[object]).map((method) => [method, () => Promise.reject(error)]),
    ) as unknown as RemoteObjects[O];
  const store = { ...refuseAll('store'), close: () => Promise.resolve() };
  return {
    store,
    archive: refuseAll('archive'),
    keys: refuseAll('keys'),
    embedder,
    finder: createFinder(store),
  };
}

async function open(data: MemoryWorkerData): Promise<Opened> {
  const { place } = data;
  return 'postgres' in place ? openPostgres(place.postgres, data) : { objects: openFolder(place.folder, data), unavailable: null }; // prettier-ignore
}

function openFolder(path: string, { masterKey, modelPath }: MemoryWorkerData): RemoteObjects {
  const indexes = lazily(async () =>
    (await import('../../platform/node/memory/vector-indexes.ts')).createVectorIndexes(report),
  );
  let folder: MemoryFolder | null = null;
  const { store, rotateMasterKey } = openMemoryStore({
    folder: path,
    masterKey,
    createIndex: async (dim) => (await indexes()).create(dim),
    openIndexFiles(opened) {
      folder = opened;
      return openIndexFiles({ folder: path, files, sealingKeyOf: opened.sealingKeyOf, indexes });
    },
    report,
  });
  assert(folder !== null, 'the store opens the folder');
  const { keys } = folder as MemoryFolder;
  const embedder = createEmbedder(modelPath);
  return {
    store: withBuilders(store, sha256),
    archive: openArchiveFiles(files, path, keys),
    embedder,
    finder: createFinder(store),
    keys: { rotate: async (to) => rotateMasterKey(to) },
  };
}

try {
  const { objects, unavailable } = await open(workerData as MemoryWorkerData);
  const serve = createObjectServer(objects, (reply) => post({ type: 'reply', reply }));
  port.on('message', (call: RemoteCall) => serve(call));
  post({ type: 'opened', unavailable: unavailable === null ? null : serializeError(unavailable) });
} catch (error) {
  post({ type: 'failed', error: serializeError(error) });
}
