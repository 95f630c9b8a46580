import { RuvLLMError } from '../core/errors.ts';
import { checkKeys } from '../core/options.ts';
import { sha256 } from '../core/sha256.ts';
import { createUuidV7 } from '../core/uuid.ts';
import type { MemoryServices } from '../memory/common/services.ts';
import type { Embedder } from '../memory/embedder-types.ts';
import { type Memory, type MemoryOptions, openMemory as openMemoryOn } from '../memory/memory.ts';
import { openLoggedStore } from '../memory/store/logged/logged-store.ts';
import { requireCapabilities } from '../platform/browser/capabilities.ts';
import type { SealingKey } from '../platform/browser/sealing/sealing-key.ts';
import { createPagesErasure, isSealingKey } from './kv-spill.ts';
import { openRemoteLog } from './remote-log.ts';

/** Options of `openMemory` in a page. */
export interface BrowserMemoryOptions extends MemoryOptions {
  /** From `openDeviceKey` or `openPassphraseKey`. */
  readonly key: SealingKey;
  /** Which memory of this page; each is open in one tab at a time. Default `memory`. */
  readonly name?: string;
  /** Embeds texts for searches by meaning. Default: none, and texts are searched by words. */
  readonly embedder?: Embedder;
  /** Counts tokens for `tokenBudget` of searches. Default: one per four characters. */
  readonly countTokens?: (text: string) => number;
  /** Called with messages for the operator. Default: a warning in the console. */
  readonly report?: (message: string) => void;
}

const KEYS = [
  'key',
  'name',
  'embedder',
  'countTokens',
  'report',
  'audit',
  'retention',
  'sessions',
  'policies',
  'reindex',
];
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
/** All records are in memory while the page is open. */
const LIMITS = { maxRecords: 200_000, maxBytes: 2 ** 29, maxEdges: 1_000_000 };

/**
 * Opens the memory in the storage of this page: texts, sessions, policies and the audit log, sealed. `in_use`: another tab has it
 * open; `invalid_option`: it is sealed with another key.
 */
export async function openMemory(options: BrowserMemoryOptions): Promise<Memory> {
  requireCapabilities();
  checkKeys(options, 'openMemory', KEYS);
  const { key, name = 'memory', embedder = null, countTokens, report = warn, ...rest } = options;
  if (!isSealingKey(key)) {
    throw new RuvLLMError('invalid_option', 'option "key" must be a key of openDeviceKey or openPassphraseKey');
  }
  if (!NAME.test(name)) {
    throw new RuvLLMError(
      'invalid_option',
      `option "name" must have 1 to 64 letters, digits, - or _, got ${JSON.stringify(name)}`,
    );
  }
  const { log, records, numDamaged } = await openRemoteLog('memory', `${name}.log`, key.key);
  if (numDamaged > 0) report(`${numDamaged} records of the memory are damaged and left out`);
  const store = await openLoggedStore({ log, entries: records, now: Date.now, limits: LIMITS, report });
  const services: MemoryServices = {
    now: Date.now,
    newId: createUuidV7({ now: Date.now, randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)) }),
    sha256,
  };
  const memory = await openMemoryOn({
    store,
    services,
    schedule(task, delayMs) {
      const timer = setTimeout(task, delayMs);
      return () => clearTimeout(timer);
    },
    monotonic: () => performance.now(),
    embedder,
    ...(countTokens === undefined ? {} : { countTokens }),
    report,
    options: rest,
  });
  memory.erasure.register(createPagesErasure());
  await memory.erasure.resume();
  return {
    ...memory,
    // Getters are read again after an erasure.
    get policies() {
      return memory.policies;
    },
    get sessions() {
      return memory.sessions;
    },
    async erase(target) {
      const erased = await memory.erase(target);
      await store.compact();
      return erased;
    },
  };
}

const warn = (message: string): void => console.warn(`RuvLLM: ${message}`);
