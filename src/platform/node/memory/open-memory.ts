import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { createUuidV7 } from '../../../core/uuid.ts';
import type { MemoryServices } from '../../../memory/common/services.ts';
import { type Memory, type MemoryOptions, openMemory } from '../../../memory/memory.ts';
import { createRemoteObjects } from '../../../memory/remote/remote-objects.ts';
import { createFallbackStore } from '../../../memory/store/fallback-store.ts';
import { createInMemoryStore } from '../../../memory/store/in-memory/in-memory-store.ts';
import { defaultMasterKeyPath } from '../kept-state.ts';
import { dataFolder, expandHome } from '../paths.ts';
import { readOrCreateMasterKey } from '../sealing/master-key.ts';
import { type MasterSource, masterSourceOf } from '../sealing/master-source.ts';
import { spawnMemory } from './spawn-memory.ts';

const compress = promisify(gzip);
const decompress = promisify(gunzip);

export interface OpenMemoryOptions extends MemoryOptions {
  /** A folder, or `postgres://…`. Default: the user's own folder. */
  readonly place?: string;
  /** Default: `RUVLLM_MASTER_KEY` or `RUVLLM_PASSPHRASE`, else the user's key file, made when there is none. */
  readonly masterKey?: MasterSource;
  /** The model file whose token rows make vectors of texts. Default: none, and nothing can be found by meaning. */
  readonly modelPath?: string | null;
  /** Hears of what the operator should know. Default: a warning of the process. */
  readonly report?: (message: string) => void;
}

/** Where the memory of this user is. */
export function defaultMemoryFolder(): string {
  return join(dataFolder(), 'memory');
}

const warn = (message: string): void => process.emitWarning(message, { code: 'RUVLLM_MEMORY' });

/** Opens the memory in a thread of its own. When its disk fails later it goes on in this process and says so. */
export async function openNodeMemory(options: OpenMemoryOptions = {}): Promise<Memory> {
  const { place = defaultMemoryFolder(), modelPath = null, report = warn, masterKey, ...rest } = options;
  const isPostgres = /^postgres(ql)?:\/\//.test(place);
  const transport = await spawnMemory(
    {
      place: isPostgres ? { postgres: place } : { folder: expandHome(place) },
      masterKey: masterKey ?? masterSourceOf(process.env) ?? { key: readOrCreateMasterKey(defaultMasterKeyPath()) },
      modelPath,
    },
    report,
  );
  const remote = createRemoteObjects(transport);
  const services: MemoryServices = {
    now: Date.now,
    newId: createUuidV7({ now: Date.now, randomBytes }),
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  };
  let described: Awaited<ReturnType<typeof remote.embedder.describe>>;
  try {
    described = await remote.embedder.describe();
  } catch (error) {
    await remote.store.close(); // else the folder stays locked by a memory that nobody has
    throw error;
  }
  return openMemory({
    store: await createFallbackStore({
      openPrimary: () => remote.store,
      createFallback: () => createInMemoryStore({ now: Date.now }),
      report,
    }),
    services,
    schedule(task, delayMs) {
      const timer = setTimeout(task, delayMs).unref();
      return () => clearTimeout(timer);
    },
    embedder: described === null ? null : { ...described, embed: (text) => remote.embedder.embed(text) },
    archive: {
      ...remote.archive,
      gzip: (bytes: Uint8Array) => compress(bytes),
      gunzip: (bytes: Uint8Array, maxBytes: number) => decompress(bytes, { maxOutputLength: maxBytes }),
    },
    rotateKey: (to) => remote.keys.rotate(to),
    report,
    options: rest,
  });
}
