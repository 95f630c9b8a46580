import { createHash, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { type ErasureSubject, isWholeTenant } from '../../core/erasure.ts';
import { checkKeys, choiceOption, refuse } from '../../core/options.ts';
import { createUuidV7 } from '../../core/uuid.ts';
import type { MemoryServices } from '../../memory/common/services.ts';
import type { Embedder } from '../../memory/embedder-types.ts';
import { type Memory, type MemoryOptions, openMemory } from '../../memory/memory.ts';
import { createRemoteObjects } from '../../memory/remote/remote-objects.ts';
import { createFallbackStore } from '../../memory/store/fallback-store.ts';
import { createInMemoryStore } from '../../memory/store/in-memory/in-memory-store.ts';
import type { ModelConfig } from '../../runtime/model-config.ts';
import { defaultMasterKeyPath, openErasurePlace, openOldFeedback } from '../kept-state.ts';
import { expandHome } from '../../platform/node/files/paths.ts';
import { schedule } from '../../platform/node/process/schedule.ts';
import { readOrCreateMasterKey } from '../../platform/node/sealing/master-key.ts';
import { type MasterSource, masterSourceOf } from '../../platform/node/sealing/master-source.ts';
import { defaultKeyFolder } from '../server/key-folder.ts';
import { defaultBackupFolder, defaultMemoryFolder } from './default-folders.ts';
import { openDocumentThread } from './document-thread.ts';
import { createRequestEmbedder, createThreadEmbedder } from './request-embedder.ts';
import { spawnMemory } from './spawn-memory.ts';
import { messageOf } from '../../core/errors.ts';

const compress = promisify(gzip);
const decompress = promisify(gunzip);

const COMPRESSION = {
  gzip: (bytes: Uint8Array) => compress(bytes),
  gunzip: (bytes: Uint8Array, maxBytes: number) => decompress(bytes, { maxOutputLength: maxBytes }),
};

/** Options of `openMemory`; all have defaults. */
export interface OpenMemoryOptions extends MemoryOptions {
  /** A folder, or `postgres://…`. Default: the user's data folder. */
  readonly place?: string;
  /** Default: `RUVLLM_MASTER_KEY` or `RUVLLM_PASSPHRASE`, else the user's key file, which is created if needed. */
  readonly masterKey?: MasterSource;
  /** A model file for embeddings. Null: none, and searches by meaning are not possible. Default: the sentence encoder of `encoder`. */
  readonly modelPath?: string | null;
  /**
   * `encoder` is all-MiniLM-L6-v2, a sentence encoder downloaded from npm on first use (45 MB); `static` uses the token rows of
   * `modelPath` and takes a fraction of a millisecond; `model` runs `modelPath` in its own engine; or your own. Default `encoder`,
   * or `static` if `modelPath` is set.
   */
  readonly embedder?: EmbedderName | Embedder;
  /** Options of the engine of `encoder` and `model`. Default: those of any model. */
  readonly embedderConfig?: Pick<ModelConfig, 'numThreads' | 'kernels'>;
  /** File of `trainEmbeddings` for the embedder `encoder` or `model`. Records are embedded again when it changes. Default: none. */
  readonly projection?: string;
  /**
   * If PostgreSQL cannot be reached: `degrade` keeps data in this process and reports it (`report`, `stats().degraded`); `fail`
   * throws; with `serve`, calls fail with a retryable `io` until it can be reached. A folder that cannot be read throws, unless
   * `serve` keeps data in this process then. Default `degrade`.
   */
  readonly whenUnreachable?: 'degrade' | 'fail' | 'serve';
  /** Counts tokens for `tokenBudget` of searches. Default: one per four characters. */
  readonly countTokens?: (text: string) => number;
  /** Where `backup` writes, and how many are kept. Default: `backups` in the user's data folder, all of them. */
  readonly backups?: { readonly folder?: string; readonly keep?: number };
  /** Called with messages for the operator. Default: a process warning. */
  readonly report?: (message: string) => void;
}

const KEYS = ['place', 'masterKey', 'modelPath', 'embedder', 'embedderConfig', 'projection', 'whenUnreachable', 'countTokens', 'report', 'audit', 'retention', 'sessions', 'policies', 'reindex', 'backups']; // prettier-ignore

/** An empty name would mean the current folder, and another kind of address a folder of that name. */
function checkPlace(place: string): string {
  const isAddress = typeof place === 'string' && /^[a-z][a-z0-9+.-]+:\/\//i.test(place);
  if (typeof place === 'string' && place !== '' && (!isAddress || POSTGRES.test(place))) return place;
  // Not the address, which may have a password.
  const got = isAddress ? `an address that starts with ${place.slice(0, place.indexOf(':'))}:` : typeof place === 'string' ? 'an empty string' : typeof place; // prettier-ignore
  return refuse(`option "place" must be a folder or postgres://…, got ${got}`, 'place');
}

const POSTGRES = /^postgres(ql)?:\/\//;

const EMBEDDER_NAMES = ['encoder', 'static', 'model'] as const;
export type EmbedderName = (typeof EMBEDDER_NAMES)[number];

const REQUIRES_ENGINE = 'option "projection" requires the embedder "encoder" or "model"';

const warn = (message: string): void => process.emitWarning(message, { code: 'RUVLLM_MEMORY' });

export type EmbedderOptions = Pick<
  OpenMemoryOptions,
  'modelPath' | 'embedder' | 'embedderConfig' | 'projection' | 'reindex'
>;

/** A memory that searches by words until it is given an embedder. */
export interface WordMemory {
  readonly memory: Memory;
  /** Loads what the embedder needs, then gives it to the memory: until then no call of the memory waits for it. */
  useEmbedder(options: EmbedderOptions): Promise<void>;
}

/**
 * Opens the memory in a thread of its own. When its server cannot be reached, it continues in this process and reports it; when its
 * disk or server fails later, what fails is an error until it works again.
 */
export async function openNodeMemory(options: OpenMemoryOptions = {}): Promise<Memory> {
  checkKeys(options, 'openMemory', KEYS);
  const { modelPath: _, embedder: __, embedderConfig: ___, projection: ____, ...rest } = options;
  checkPlace(rest.place ?? defaultMemoryFolder());
  // Before the folder is made: a wrong option leaves nothing behind.
  const chosen = await chooseEmbedder(options, rest.report ?? warn);
  const { memory, use } = await openStore(rest);
  try {
    await use(chosen, { reindex: rest.reindex, create: createRequestEmbedder });
    return memory;
  } catch (error) {
    await memory.close(); // otherwise the folder stays locked
    throw error;
  }
}

/** Opens the memory without its embedder, which comes later. */
export async function openWordMemory(options: Omit<OpenMemoryOptions, keyof EmbedderOptions>): Promise<WordMemory> {
  const { memory, use } = await openStore(options);
  return {
    memory,
    async useEmbedder({ reindex, ...choice }) {
      const chosen = await chooseEmbedder(choice, options.report ?? warn);
      try {
        await chosen.own?.embed('ready');
        await use(chosen, { reindex, create: createThreadEmbedder });
      } catch (error) {
        await chosen.own?.close?.();
        throw error;
      }
    },
  };
}

interface OpenedStore {
  readonly memory: Memory;
  use(
    chosen: ChosenEmbedder,
    options: { readonly reindex: boolean | undefined; readonly create: typeof createRequestEmbedder },
  ): Promise<void>;
}

async function openStore(
  options: Omit<OpenMemoryOptions, Exclude<keyof EmbedderOptions, 'reindex'>>,
): Promise<OpenedStore> {
  // prettier-ignore
  const { report = warn, masterKey, place: given, whenUnreachable, countTokens, backups = {}, ...rest } = options;
  const place = checkPlace(given ?? defaultMemoryFolder());
  const reaction = choiceOption('degrade', ['degrade', 'fail', 'serve'])(whenUnreachable, 'whenUnreachable');
  const isPostgres = POSTGRES.test(place);
  const { transport, unavailable, problem } = await spawnMemory(
    {
      place: isPostgres ? { postgres: place } : { folder: expandHome(place) },
      masterKey: masterKey ?? masterSourceOf(process.env) ?? { key: readOrCreateMasterKey(defaultMasterKeyPath()) },
      canReplace: reaction === 'serve',
      apiKeyFolder: defaultKeyFolder(),
    },
    report,
  );
  const remote = createRemoteObjects(transport);
  const services: MemoryServices = {
    now: Date.now,
    newId: createUuidV7({ now: Date.now, randomBytes }),
    sha256: (bytes) => createHash('sha256').update(bytes).digest(),
  };
  if (unavailable !== null && reaction === 'fail') {
    await remote.store.close();
    throw unavailable;
  }
  const canBeAway = isPostgres && reaction === 'serve';
  const isReplaced = unavailable !== null && !canBeAway;
  const store = await createFallbackStore({
    openPrimary: () => (isReplaced ? Promise.reject(unavailable) : remote.store),
    createFallback: () => createInMemoryStore({ now: Date.now }),
    now: () => performance.now(),
    schedule,
    sha256: services.sha256,
    problem,
    report,
  });
  const documents = openDocumentThread();
  const memory = await openMemory({
    divide: documents.divide,
    store: {
      ...store,
      async close() {
        await documents.dispose();
        await store.close();
        await remote.store.close(); // the thread, which embeds also while degraded
      },
    },
    degraded: store.degraded,
    ...(countTokens === undefined ? {} : { countTokens }),
    isShared: isPostgres,
    canBeAway,
    services,
    schedule,
    embedder: null,
    monotonic: () => performance.now(),
    ...(!isReplaced ? { finder: remote.finder, archive: { ...remote.archive, ...COMPRESSION } } : {}),
    rotateKey: (to) => remote.keys.rotate(to),
    backup: () =>
      remote.backups.write({ root: expandHome(backups.folder ?? defaultBackupFolder()), keep: backups.keep ?? null }),
    report,
    options: rest,
  });
  await registerNodeParts(memory);
  return {
    memory,
    async use({ own, tablePath }, { reindex, create }) {
      let table: Embedder | null = null;
      if (tablePath !== null) {
        const { embed, open } = remote.embedder;
        table = create({ ...(await open(tablePath)), embed }, tablePath);
      }
      const embedder = own ?? table;
      if (embedder === null) return;
      await memory.useEmbedder({ embedder, requestEmbedder: table, ...(reindex === undefined ? {} : { reindex }) });
    },
  };
}

/** What earlier processes left outside the memory: folders of models, old feedback, and learned state while learning is off. */
async function registerNodeParts(memory: Memory): Promise<void> {
  const { erasure } = memory;
  const isNeeded = (subject: ErasureSubject): boolean => !isWholeTenant(subject) && !erasure.has('learning');
  const storedLearning = () => import('../learning/stored-learning.ts');
  erasure.register({
    name: 'learned state',
    async erase(subject) {
      if (isNeeded(subject)) await (await storedLearning()).eraseStored(memory, subject);
    },
    count: async (subject) => (isNeeded(subject) ? (await storedLearning()).countStored(memory, subject) : 0),
  });
  const feedback = openOldFeedback();
  if (feedback !== null) erasure.register(feedback);
  await memory.eventually(async () => {
    for (const name of await erasure.places()) {
      const place = erasure.has(name) ? null : openErasurePlace(name);
      if (place !== null) erasure.register(place);
    }
    await erasure.resume();
  });
}

interface ChosenEmbedder {
  /** An embedder of this thread; null: the token rows of `tablePath` are the only one. */
  readonly own: Embedder | null;
  /** The model whose token rows embed requests. */
  readonly tablePath: string | null;
}

async function chooseEmbedder(
  options: Omit<EmbedderOptions, 'reindex'>,
  report: (message: string) => void,
): Promise<ChosenEmbedder> {
  const { embedder: wanted, modelPath, embedderConfig: config, projection } = options;
  if (typeof wanted === 'object' && wanted !== null && typeof wanted.embed === 'function') {
    if (projection !== undefined) refuse(REQUIRES_ENGINE, 'projection');
    return { own: wanted, tablePath: null };
  }
  const isDefault = wanted === undefined;
  const name = choiceOption(modelPath === undefined ? 'encoder' : 'static', EMBEDDER_NAMES)(wanted, 'embedder');
  if (config !== undefined && name === 'static') {
    refuse('option "embedderConfig" requires the embedder "encoder" or "model"', 'embedderConfig');
  }
  if (projection !== undefined && name === 'static') refuse(REQUIRES_ENGINE, 'projection');
  if (name === 'static') return { own: null, tablePath: modelPath ?? null };
  if (name === 'encoder') {
    const path = await findEncoderOr(isDefault, report);
    return path === null ? { own: null, tablePath: null } : openBoth(path, options);
  }
  if (modelPath == null) refuse('the embedder "model" requires "modelPath"', 'embedder');
  return openBoth(modelPath, options);
}

async function openBoth(path: string, { embedderConfig, projection }: EmbedderOptions): Promise<ChosenEmbedder> {
  const { openModelEmbedder } = await import('./model-embedder.ts');
  const read = projection === undefined ? null : (await import('../projection-file.ts')).readProjectionFile(projection);
  return { own: openModelEmbedder(path, embedderConfig, read), tablePath: path };
}

/** Null: it is only the default, and the memory works without. */
async function findEncoderOr(isOptional: boolean, report: (message: string) => void): Promise<string | null> {
  const { findEncoder } = await import('./find-encoder.ts');
  try {
    return await findEncoder();
  } catch (error) {
    if (!isOptional) throw error;
    const reason = messageOf(error);
    report(`the sentence encoder is unavailable (${reason}): searches by meaning are not possible`);
    return null;
  }
}
