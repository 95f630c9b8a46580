import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { RuvLLMError } from '../../core/errors.ts';
import { choiceOption } from '../../core/options.ts';
import { createUuidV7 } from '../../core/uuid.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { Embedder } from '../../memory/embedder-types.ts';
import { type Memory, type MemoryOptions, openMemory } from '../../memory/memory.ts';
import { createRemoteObjects } from '../../memory/remote/remote-objects.ts';
import { checkKeys } from '../../memory/store/checks.ts';
import { createFallbackStore } from '../../memory/store/fallback-store.ts';
import { createInMemoryStore } from '../../memory/store/in-memory/in-memory-store.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import { defaultMasterKeyPath } from '../kept-state.ts';
import { dataFolder, expandHome } from '../../platform/node/files/paths.ts';
import { readOrCreateMasterKey } from '../../platform/node/sealing/master-key.ts';
import { type MasterSource, masterSourceOf } from '../../platform/node/sealing/master-source.ts';
import { spawnMemory } from './spawn-memory.ts';

const compress = promisify(gzip);
const decompress = promisify(gunzip);

const COMPRESSION = {
  gzip: (bytes: Uint8Array) => compress(bytes),
  gunzip: (bytes: Uint8Array, maxBytes: number) => decompress(bytes, { maxOutputLength: maxBytes }),
};

/** Options of a memory; every field has a default. */
export interface OpenMemoryOptions extends MemoryOptions {
  /** A folder or `postgres://…`. Default: a folder of this user. */
  readonly place?: string;
  /** Default: `RUVLLM_MASTER_KEY` or `RUVLLM_PASSPHRASE`, otherwise the user's key file, created if missing. */
  readonly masterKey?: MasterSource;
  /** The model file for embeddings. Default: none, so there is no search by meaning. */
  readonly modelPath?: string | null;
  /**
   * `static` uses the file's token rows and takes a fraction of a millisecond; `model` runs the model in its own engine, best with a
   * sentence encoder; or pass your own embedder. Texts added with another embedder are not found by meaning. Default `static`.
   */
  readonly embedder?: EmbedderName | Embedder;
  /** Options of the engine of `model`. Default: as in `loadModel`. */
  readonly embedderConfig?: Pick<ModelConfig, 'numThreads' | 'kernels'>;
  /**
   * If PostgreSQL is unavailable at the start: `degrade` keeps the memory in this process and reports it (`report`,
   * `stats().degraded`), so that requests are answered; `fail` throws, so that no writes are lost. A folder that cannot be opened always
   * throws. Default `degrade`.
   */
  readonly whenUnreachable?: WhenUnreachable;
  /** Called with problems for the operator. Default: a process warning. */
  readonly report?: (message: string) => void;
}

/** The default memory folder of this user. */
export function defaultMemoryFolder(): string {
  return join(dataFolder(), 'memory');
}

const KEYS = [
  'place',
  'masterKey',
  'modelPath',
  'embedder',
  'embedderConfig',
  'whenUnreachable',
  'report',
  'audit',
  'retention',
  'sessions',
  'policies',
];

/** Rejects an empty name, which would be the working folder, and other URLs, which would be folder names. */
function checkPlace(place: string): string {
  const isAddress = typeof place === 'string' && /^[a-z][a-z0-9+.-]+:\/\//i.test(place);
  if (typeof place === 'string' && place !== '' && (!isAddress || POSTGRES.test(place))) return place;
  // The URL is not shown, because it may contain a password.
  const got = isAddress ? `a URL that starts with ${place.slice(0, place.indexOf(':'))}:` : typeof place === 'string' ? 'an empty string' : typeof place; // prettier-ignore
  throw new RuvLLMError('invalid_option', `option "place" must be a folder or postgres://…, got ${got}`, {
    data: { option: 'place' },
  });
}

const POSTGRES = /^postgres(ql)?:\/\//;

/** The embedders of a model file. */
export const EMBEDDER_NAMES = ['static', 'model'] as const;
export type EmbedderName = (typeof EMBEDDER_NAMES)[number];

const WHEN_UNREACHABLE = ['degrade', 'fail'] as const;
export type WhenUnreachable = (typeof WHEN_UNREACHABLE)[number];

const warn = (message: string): void => process.emitWarning(message, { code: 'RUVLLM_MEMORY' });

/** Opens the memory in its own thread. If its disk or server fails later, it continues in this process, degraded, and reports it. */
export async function openNodeMemory(options: OpenMemoryOptions = {}): Promise<Memory> {
  checkKeys(options, 'openMemory', KEYS);
  const { modelPath = null, report = warn, masterKey, embedder, embedderConfig, place: given, whenUnreachable, ...rest } = options; // prettier-ignore
  const place = checkPlace(given ?? defaultMemoryFolder());
  const canDegrade = choiceOption('degrade', WHEN_UNREACHABLE)(whenUnreachable, 'whenUnreachable') === 'degrade';
  const isPostgres = POSTGRES.test(place);
  const own = await chooseEmbedder(embedder ?? 'static', modelPath, embedderConfig);
  const { transport, unavailable } = await spawnMemory(
    {
      place: isPostgres ? { postgres: place } : { folder: expandHome(place) },
      masterKey: masterKey ?? masterSourceOf(process.env) ?? { key: readOrCreateMasterKey(defaultMasterKeyPath()) },
      modelPath: own === null ? modelPath : null,
    },
    report,
  );
  const remote = createRemoteObjects(transport);
  const services: MemoryServices = {
    now: Date.now,
    newId: createUuidV7({ now: Date.now, randomBytes }),
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  };
  if (unavailable !== null && !canDegrade) {
    await remote.store.close();
    throw unavailable;
  }
  let described: Awaited<ReturnType<typeof remote.embedder.describe>>;
  try {
    described = await remote.embedder.describe();
  } catch (error) {
    await remote.store.close(); // otherwise the folder stays locked
    throw error;
  }
  const store = await createFallbackStore({
    openPrimary: () => (unavailable === null ? remote.store : Promise.reject(unavailable)),
    createFallback: () => createInMemoryStore({ now: Date.now }),
    report,
  });
  return openMemory({
    store: {
      ...store,
      async close() {
        await store.close();
        await remote.store.close(); // ends the thread, which also embeds for a degraded store
      },
    },
    degraded: store.degraded,
    services,
    schedule(task, delayMs) {
      if (delayMs === 0) {
        const turn = setImmediate(task).unref(); // a timer would wait a whole millisecond
        return () => clearImmediate(turn);
      }
      const timer = setTimeout(task, delayMs).unref();
      return () => clearTimeout(timer);
    },
    embedder: own ?? (described && { ...described, isBesideStore: true, embed: (text) => remote.embedder.embed(text) }),
    monotonic: () => performance.now(),
    ...(unavailable === null ? { finder: remote.finder, archive: { ...remote.archive, ...COMPRESSION } } : {}),
    rotateKey: (to) => remote.keys.rotate(to),
    report,
    options: rest,
  });
}

/** An embedder in this thread, or null if the memory's thread has it. */
async function chooseEmbedder(
  wanted: EmbedderName | Embedder,
  modelPath: string | null,
  config: OpenMemoryOptions['embedderConfig'],
): Promise<Embedder | null> {
  if (typeof wanted === 'object' && wanted !== null && typeof wanted.embed === 'function') return wanted;
  const name = choiceOption('static', EMBEDDER_NAMES)(wanted, 'embedder');
  if (config !== undefined && name !== 'model') {
    throw new RuvLLMError('invalid_option', 'option "embedderConfig" requires the embedder "model"', {
      data: { option: 'embedderConfig' },
    });
  }
  if (name === 'static') return null;
  if (modelPath === null) {
    throw new RuvLLMError('invalid_option', 'the embedder "model" requires option "modelPath"', {
      data: { option: 'embedder' },
    });
  }
  const { openModelEmbedder } = await import('./model-embedder.ts');
  return openModelEmbedder(modelPath, config);
}
