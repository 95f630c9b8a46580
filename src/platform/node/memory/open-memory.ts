import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { RuvLLMError } from '../../../core/errors.ts';
import { createUuidV7 } from '../../../core/uuid.ts';
import type { MemoryServices } from '../../../memory/common/services.ts';
import { type Memory, type MemoryOptions, openMemory } from '../../../memory/memory.ts';
import { createRemoteObjects } from '../../../memory/remote/remote-objects.ts';
import { checkKeys } from '../../../memory/store/checks.ts';
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

const KEYS = ['place', 'masterKey', 'modelPath', 'report', 'witness', 'retention', 'sessions', 'policies'];

/** An empty name would be the folder one happens to be in, and an address of another kind a folder of that name. */
function checkPlace(place: string): string {
  const isAddress = typeof place === 'string' && /^[a-z][a-z0-9+.-]+:\/\//i.test(place);
  if (typeof place === 'string' && place !== '' && (!isAddress || POSTGRES.test(place))) return place;
  // An address is not shown: it may have a password.
  const got = isAddress ? `an address that begins with ${place.slice(0, place.indexOf(':'))}:` : typeof place === 'string' ? 'an empty text' : typeof place; // prettier-ignore
  throw new RuvLLMError('invalid_option', `option "place" must be a folder or postgres://…, got ${got}`, {
    data: { option: 'place' },
  });
}

const POSTGRES = /^postgres(ql)?:\/\//;
const warn = (message: string): void => process.emitWarning(message, { code: 'RUVLLM_MEMORY' });

/** Opens the memory in a thread of its own. When its disk fails later it goes on in this process and says so. */
export async function openNodeMemory(options: OpenMemoryOptions = {}): Promise<Memory> {
  checkKeys(options, 'openMemory', KEYS);
  const { modelPath = null, report = warn, masterKey, place: given, ...rest } = options;
  const place = checkPlace(given ?? defaultMemoryFolder());
  const isPostgres = POSTGRES.test(place);
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
    ...(isPostgres
      ? {}
      : {
          archive: {
            ...remote.archive,
            gzip: (bytes: Uint8Array) => compress(bytes),
            gunzip: (bytes: Uint8Array, maxBytes: number) => decompress(bytes, { maxOutputLength: maxBytes }),
          },
        }),
    report,
    options: rest,
  });
}
