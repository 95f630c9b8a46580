// The memory's thread: started by spawn-memory.ts, ended by it.
import { createHash } from 'node:crypto';
import * as files from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { assert, messageOf, RuvLLMError, serializeError } from '../../core/errors.ts';
import type { StaticEmbedder } from '../../memory/embedder/static-embedder.ts';
import { createObjectServer } from '../../memory/remote/remote-objects.ts';
import type { RemoteCall } from '../../core/remote-calls.ts';
import {
  REMOTE_METHODS,
  type RemoteEmbedder,
  type RemoteFinder,
  type RemoteObjects,
} from '../../memory/remote/protocol.ts';
import type { MemoryStore } from '../../memory/types.ts';
import type { PostgresMemory } from '../../platform/node/memory/postgres.ts';
import { openArchiveFiles } from '../../platform/node/memory/archive-files.ts';
import { openIndexFiles } from '../../platform/node/memory/index-files.ts';
import type { MemoryFolder } from '../../platform/node/memory/memory-folder.ts';
import { collectWhenIdle } from '../../platform/node/process/collect-when-idle.ts';
import { openMemoryStore } from './open-memory-store.ts';
import type { MemoryWorkerData, MemoryWorkerMessage } from './spawn-memory.ts';

const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();
const port = parentPort;
assert(port !== null, 'memory-worker runs as a worker thread');
collectWhenIdle();
const post = (message: MemoryWorkerMessage): void => port.postMessage(message);
const report = (message: string): void => post({ type: 'report', message });

/**
 * Below the serving thread: on two cores, one request in a hundred waited several milliseconds for a core that this thread had with
 * background writes. On Linux the call is about the calling thread; elsewhere it would be about the whole process.
 */
const NICENESS = 5;
if (process.platform === 'linux') setPriority(0, NICENESS);

/** After the start, so that the first requests do not wait for it. */
const SCRUB_AFTER_MS = 1000;

/** Creates it on the first call, and again after a failure. */
function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null;
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    }));
}

/** Loads its schemas with the first request that is stored. */
function withBuilders(store: MemoryStore): MemoryStore {
  const made = lazily(async () => (await import('../../memory/record-builders.ts')).withBuilders(store, sha256));
  return { ...store, putBuilt: async (...args) => (await made()).putBuilt!(...args) };
}

function createEmbedder(): RemoteEmbedder {
  let table: StaticEmbedder | null = null;
  return {
    async open(modelPath) {
      table = (await import('./table-embedder.ts')).openTableEmbedder(modelPath);
      const { fingerprint, dim, common } = table;
      return { fingerprint, dim, common };
    },
    async embed(text) {
      if (table === null) throw new RuvLLMError('unsupported', 'the memory has no model to embed with');
      return table.embed(text);
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

const refuseBackup = (): Promise<never> =>
  Promise.reject(new RuvLLMError('unsupported', 'a memory in PostgreSQL is backed up with the tools of PostgreSQL'));

/** Two at once would copy the same files. */
function oneAtATime<A, T>(run: (argument: A) => Promise<T>): (argument: A) => Promise<T> {
  let isBusy = false;
  return async (argument) => {
    if (isBusy) throw new RuvLLMError('conflict', 'a backup is being written', { isRetryable: true });
    isBusy = true;
    try {
      return await run(argument);
    } finally {
      isBusy = false;
    }
  };
}

interface Opened {
  readonly objects: RemoteObjects;
  /** Why the store cannot be reached. */
  readonly unavailable: RuvLLMError | null;
}

const isLost = (error: unknown): error is RuvLLMError =>
  error instanceof RuvLLMError && error.data['isConnectionLost'] === true;

/** Opens it with the first call that finds the server, if it is away now. */
async function openPostgres(place: string, { masterKey }: MemoryWorkerData): Promise<Opened> {
  const opened = lazily(async () => {
    const { openPostgresMemory } = await import('../../platform/node/memory/postgres.ts');
    return openPostgresMemory({ connectionString: place, masterKey });
  });
  let unavailable: RuvLLMError | null = null;
  let isOpen = false;
  try {
    await opened();
    isOpen = true;
  } catch (error) {
    // A wrong password or key must be corrected; an unreachable server may come back.
    if (!isLost(error)) throw error;
    unavailable = error;
  }
  async function obtain(): Promise<PostgresMemory> {
    try {
      const memory = await opened();
      isOpen = true;
      return memory;
    } catch (error) {
      if (isLost(error)) throw error;
      const reason = messageOf(error);
      // Until someone corrects it, it is as if the server were away: no request may be refused as invalid.
      throw new RuvLLMError('io', reason, { cause: error, isRetryable: true, data: { isConnectionLost: true } });
    }
  }
  const late = <T extends object>(names: object, partOf: (memory: PostgresMemory) => T): T =>
    Object.fromEntries(
      Object.keys(names).map((name) => [
        name,
        async (...args: unknown[]) => {
          const part = partOf(await obtain()) as Record<string, (...args: unknown[]) => unknown>;
          return part[name]!(...args);
        },
      ]),
    ) as unknown as T;
  const { putBuilt: _, ...names } = REMOTE_METHODS.store;
  const store: MemoryStore = {
    ...late<MemoryStore>(names, (memory) => memory),
    close: async () => (isOpen ? (await opened()).close() : undefined),
  };
  return {
    objects: {
      store: withBuilders(store),
      archive: late(REMOTE_METHODS.archive, ({ archive }) => archive),
      embedder: createEmbedder(),
      finder: createFinder(store),
      keys: { rotate: async (to) => (await obtain()).rotateMasterKey(to) },
      backups: { write: refuseBackup },
    },
    unavailable,
  };
}

/** Embeds texts; everything else fails with the error of the opening. */
function createUnavailable(embedder: RemoteEmbedder, error: RuvLLMError): RemoteObjects {
  const refuseAll = <O extends 'store' | 'archive' | 'keys' | 'backups'>(object: O): RemoteObjects[O] =>
    Object.fromEntries(
      Object.keys(REMOTE_METHODS[object]).map((method) => [method, () => Promise.reject(error)]),
    ) as unknown as RemoteObjects[O];
  const store = { ...refuseAll('store'), close: () => Promise.resolve() };
  return {
    store,
    archive: refuseAll('archive'),
    keys: refuseAll('keys'),
    backups: refuseAll('backups'),
    embedder,
    finder: createFinder(store),
  };
}

async function open(data: MemoryWorkerData): Promise<Opened> {
  const { place } = data;
  if ('postgres' in place) return openPostgres(place.postgres, data);
  try {
    return { objects: openFolder(place.folder, data), unavailable: null };
  } catch (error) {
    if (!data.canReplace || !(error instanceof RuvLLMError) || !['io', 'disk_full'].includes(error.code)) throw error;
    return { objects: createUnavailable(createEmbedder(), error), unavailable: error };
  }
}

function openFolder(path: string, { masterKey, apiKeyFolder }: MemoryWorkerData): RemoteObjects {
  const indexes = lazily(async () =>
    (await import('../../platform/node/memory/vector-indexes.ts')).createVectorIndexes(report),
  );
  let folder: MemoryFolder | null = null;
  const { store, rotateMasterKey, backUp } = openMemoryStore({
    folder: path,
    masterKey,
    createIndex: async (dim) => (await indexes()).create(dim),
    openIndexFiles(opened) {
      folder = opened;
      return openIndexFiles({ folder: path, files, sealingKeyOf: opened.sealingKeyOf, indexes });
    },
    report,
    onProblem: (message) => post({ type: 'problem', message }),
  });
  setTimeout(() => void store.state.scrub().catch(() => {}), SCRUB_AFTER_MS).unref();
  assert(folder !== null, 'the store opens the folder');
  const { keys } = folder as MemoryFolder;
  const embedder = createEmbedder();
  return {
    store: withBuilders(store),
    archive: openArchiveFiles(files, path, keys),
    embedder,
    finder: createFinder(store),
    keys: { rotate: async (to) => rotateMasterKey(to) },
    backups: { write: oneAtATime((place) => backUp({ ...place, apiKeyFolder })) },
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
