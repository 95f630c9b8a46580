import { RuvLLMError, type ErrorCode } from '../../core/errors.ts';
import type { MemoryStore } from '../types.ts';

export interface FallbackStoreOptions {
  /** Called once, now. */
  readonly openPrimary: () => MemoryStore | Promise<MemoryStore>;
  /** Called when the primary is given up. */
  readonly createFallback: () => MemoryStore;
  /** Hears once that the fallback took over, and why. */
  readonly report: (message: string) => void;
  /** Failures in a row after which the primary is given up. Default 3. */
  readonly maxFailures?: number;
  /** Causes that are the disk's and not the caller's; any other is thrown as it is. Default: `io` and `disk_full`. */
  readonly causes?: readonly ErrorCode[];
}

/** A store that may be another one than it should be. */
export interface FallbackStore extends MemoryStore {
  /** Why it is kept in memory only; null: it is not. As `stats` says, at no cost. */
  degraded(): string | null;
}

type Method = Exclude<keyof MemoryStore, 'close' | 'stats' | 'eraseTenant'>;

/**
 * A store that goes on in memory when its disk does not: at once when it cannot be opened, else after some failures in a row, each of
 * which is thrown. It never goes back by itself, for two memories would have to be made one.
 */
export async function createFallbackStore(options: FallbackStoreOptions): Promise<FallbackStore> {
  const { openPrimary, createFallback, report, maxFailures = 3, causes = ['io', 'disk_full'] } = options;
  let primary: MemoryStore | null = null;
  let fallback: { readonly store: MemoryStore; readonly reason: string } | null = null;
  let numFailures = 0;
  let isClosed = false;

  const isCause = (error: unknown): boolean => error instanceof RuvLLMError && causes.includes(error.code);

  function giveUp(error: unknown, doing: string): MemoryStore {
    const reason = `${doing}: ${error instanceof Error ? error.message : String(error)}`;
    fallback ??= { store: createFallback(), reason };
    report(`the memory is kept in this process only, and lost with it, since ${reason}`);
    return fallback.store;
  }

  async function run<T>(call: (store: MemoryStore) => Promise<T>): Promise<T> {
    if (fallback !== null) return call(fallback.store);
    try {
      const value = await call(primary!);
      numFailures = 0;
      return value;
    } catch (error) {
      if (!isCause(error) || isClosed) throw error;
      // Of many calls that were waiting for the same disk, the first that is one too many gives up for all.
      if (fallback === null && ++numFailures < maxFailures) throw error;
      return call(fallback === null ? giveUp(error, `the disk failed ${numFailures} times`) : currentFallback());
    }
  }
  const currentFallback = (): MemoryStore => fallback!.store;

  try {
    primary = await openPrimary();
  } catch (error) {
    if (!isCause(error)) throw error;
    giveUp(error, 'it cannot be opened');
  }

  const forward =
    <M extends Method>(name: M) =>
    (...args: Parameters<MemoryStore[M]>): Promise<Awaited<ReturnType<MemoryStore[M]>>> =>
      run((store) => (store[name] as (...values: typeof args) => never)(...args));

  return {
    degraded: () => fallback?.reason ?? null,
    put: forward('put'),
    get: forward('get'),
    find: forward('find'),
    count: forward('count'),
    nearest: forward('nearest'),
    delete: forward('delete'),
    putEdges: forward('putEdges'),
    edgesOf: forward('edgesOf'),
    deleteEdges: forward('deleteEdges'),
    sweepExpired: forward('sweepExpired'),
    checkIntegrity: forward('checkIntegrity'),
    async eraseTenant(tenant) {
      if (fallback === null) return primary!.eraseTenant(tenant); // its failure must be seen
      await fallback.store.eraseTenant(tenant);
      throw new RuvLLMError('io', `the tenant is erased in this process, but not on the disk: ${fallback.reason}`);
    },
    async stats(tenant) {
      const stats = await run((store) => store.stats(tenant));
      if (fallback === null) return stats;
      return { ...stats, degraded: [fallback.reason, stats.degraded].filter((text) => text !== null).join('; ') };
    },
    async close() {
      isClosed = true;
      await fallback?.store.close();
      try {
        await primary?.close();
      } catch (error) {
        if (fallback === null) throw error;
      }
    },
  };
}
