import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { Sha256 } from '../common/services.ts';
import { withBuilders } from '../record-builders.ts';
import type { MemoryStore } from '../types.ts';

export interface FallbackStoreOptions {
  /** Called once. */
  readonly openPrimary: () => MemoryStore | Promise<MemoryStore>;
  /** Called when the primary cannot be opened. */
  readonly createFallback: () => MemoryStore;
  /** Called when the store fails, and when it works again. */
  readonly report: (message: string) => void;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
  /** Consecutive failures after which calls fail at once, without waiting for the disk or server. Default 3. */
  readonly maxFailures?: number;
  /** After this time one call tries again. Default 1000. */
  readonly probeMs?: number;
  /** Asks a server that was lost until it answers, also without calls. Default: only calls try. */
  readonly schedule?: (task: () => void, delayMs: number) => () => void;
  /** Records that the primary has lost or cannot read, in words; null: none known. Default: nothing. */
  readonly problem?: () => string | null;
  /** For records that the fallback has to build. Default: none, callers build them. */
  readonly sha256?: Sha256;
}

/** A store that may be failing, or replaced by one in memory. */
export interface FallbackStore extends MemoryStore {
  /** Why data is in memory only, or cannot be written or read; null: all is well. */
  degraded(): string | null;
}

/** Delays between questions to a lost server: doubled each time. */
const FIRST_ASK_MS = 250;
const MAX_ASK_MS = 10_000;
/** Asking for this tenant changes nothing, and has no records to read. */
const ASK_TENANT = 'is the server there';

/** Methods that are only forwarded. A full disk ends writes, but reads continue. */
const WRITES = ['put', 'delete', 'putEdges', 'deleteEdges', 'sweepExpired'] as const;
const READS = ['get', 'find', 'count', 'nearest', 'match', 'edgesOf', 'checkIntegrity'] as const;
type Forwarded = Pick<MemoryStore, (typeof WRITES)[number] | (typeof READS)[number]>;

const isOfDisk = (error: unknown): error is RuvLLMError =>
  error instanceof RuvLLMError && (error.code === 'io' || error.code === 'disk_full');
/** Not a single damaged record or key: others can still be read. */
const isOfWholeStore = (error: unknown): error is RuvLLMError => isOfDisk(error) && error.data['isDamaged'] !== true;
const isLostServer = (error: RuvLLMError | null): boolean => error?.data['isConnectionLost'] === true;
/** Of the data, whether of one record or of the database: it stays until it is repaired. */
const isDamage = (error: unknown): error is RuvLLMError =>
  isOfDisk(error) && (error.data['isDamaged'] === true || /malformed|not a database/.test(String(error.data['sqlite'] ?? ''))); // prettier-ignore

/**
 * A store that cannot be opened is replaced by one in memory. One that fails later is not: its records would seem to be gone,
 * and what is added meanwhile would be lost. Its failures are thrown, and after several in a row calls fail at once, except
 * one now and then that tries again. A lost server is asked until it answers.
 */
export async function createFallbackStore(options: FallbackStoreOptions): Promise<FallbackStore> {
  const { openPrimary, createFallback, report, now, sha256, schedule } = options;
  const { maxFailures = 3, probeMs = 1000, problem = () => null } = options;
  let primary: MemoryStore;
  let whyReplaced: string | null = null;
  let isClosed = false;
  let damage: string | null = null;

  /** Lets calls of one kind through until they fail several times in a row. */
  function createBreaker(verb: 'written' | 'read') {
    let numFailures = 0;
    let last: RuvLLMError | null = null;
    let nextProbeMs = 0;
    // Without the reason, which has paths and addresses: it is in the report and the status.
    const refusalOf = (
      error: RuvLLMError,
      isOutcomeUnknown = error.data['isOutcomeUnknown'] === true,
      { code } = error,
    ): RuvLLMError =>
      new RuvLLMError(
        code,
        `the memory cannot be ${verb}: ${code === 'disk_full' ? 'its disk is full' : 'its disk or database fails'}${isOutcomeUnknown ? '; it is unknown whether this write succeeded, so check before a retry' : ''}`,
        {
          isRetryable: true,
          data: { ...(isOutcomeUnknown && { isOutcomeUnknown }), ...(isDamage(error) && { isDamaged: true }) },
        },
      );
    function recover(): void {
      if (numFailures >= maxFailures) report(`the memory can be ${verb} again`);
      numFailures = 0;
      last = null;
    }
    async function run<T>(call: (store: MemoryStore) => Promise<T>): Promise<T> {
      if (last !== null && numFailures >= maxFailures) {
        if (now() < nextProbeMs) throw refusalOf(last, false); // it was not tried
        nextProbeMs = now() + probeMs; // one call tries; the others do not wait for it
      }
      try {
        const value = await call(primary);
        recover();
        return value;
      } catch (error) {
        if (isDamage(error) && damage === null) {
          damage = `a part of it cannot be read: ${error.message}`;
          report(`${damage}; ruvllm memory check finds all damage`);
        }
        if (!isOfWholeStore(error) || isClosed || whyReplaced !== null) throw error;
        last = error;
        nextProbeMs = now() + probeMs;
        if (++numFailures === maxFailures) {
          report(`the memory cannot be ${verb} until its disk or server works again: ${error.message}`);
        }
        if (isLostServer(error)) askLater(FIRST_ASK_MS);
        throw refusalOf(error);
      }
    }
    function serverAnswers(): void {
      if (isLostServer(last)) recover();
    }
    return { run, serverAnswers, reason: (): string | null => last && `it cannot be ${verb}: ${last.message}` };
  }

  let cancelAsk: (() => void) | null = null;
  function askLater(delayMs: number): void {
    if (schedule === undefined || cancelAsk !== null || isClosed) return;
    cancelAsk = schedule(() => void ask(delayMs), delayMs);
  }
  async function ask(delayMs: number): Promise<void> {
    let isLost = false;
    try {
      await primary.count(ASK_TENANT, { kinds: ['fact'] });
    } catch (error) {
      isLost = error instanceof RuvLLMError && isLostServer(error);
    }
    cancelAsk = null;
    if (isLost) return askLater(Math.min(MAX_ASK_MS, 2 * delayMs));
    writing.serverAnswers();
    reading.serverAnswers();
  }

  const [writing, reading] = [createBreaker('written'), createBreaker('read')];

  try {
    primary = await openPrimary();
  } catch (error) {
    if (!isOfDisk(error)) throw error;
    whyReplaced = `it cannot be opened: ${messageOf(error)}`;
    report(`the memory is kept in this process only and is lost when it ends, because ${whyReplaced}`);
    primary = createFallback();
  }
  const forward = (names: readonly (keyof Forwarded)[], { run }: typeof writing): Partial<Forwarded> =>
    Object.fromEntries(
      names.map((name) => [name, (...args: never[]) => run((store) => (store[name] as (...values: never[]) => Promise<unknown>)(...args))]), // prettier-ignore
    );
  const building = (store: MemoryStore): MemoryStore =>
    store.putBuilt === undefined ? withBuilders(store, sha256!) : store;
  const degraded = (): string | null => whyReplaced ?? writing.reason() ?? reading.reason() ?? problem() ?? damage;

  return {
    degraded,
    ...(forward(WRITES, writing) as Pick<Forwarded, (typeof WRITES)[number]>),
    ...(forward(READS, reading) as Pick<Forwarded, (typeof READS)[number]>),
    ...(sha256 === undefined
      ? {}
      : { putBuilt: (...args) => writing.run((store) => building(store).putBuilt!(...args)) }),
    async eraseTenant(tenant) {
      await primary.eraseTenant(tenant); // a failure must be seen
      if (whyReplaced !== null) {
        throw new RuvLLMError('io', `the tenant is erased in this process but not on disk: ${whyReplaced}`);
      }
    },
    async stats(tenant) {
      const stats = await reading.run((store) => store.stats(tenant));
      const reasons = [degraded(), stats.degraded].filter((text) => text !== null);
      return { ...stats, degraded: reasons.length === 0 ? null : [...new Set(reasons)].join('; ') };
    },
    async close() {
      isClosed = true;
      cancelAsk?.();
      await primary.close();
    },
  };
}
