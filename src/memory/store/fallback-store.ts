import { RuvLLMError, type ErrorCode } from '../../core/errors.ts';
import type { Sha256 } from '../common/services.ts';
import { withBuilders } from '../record-builders.ts';
import type { MemoryStore } from '../types.ts';

export interface FallbackStoreOptions {
  /** Called once. */
  readonly openPrimary: () => MemoryStore | Promise<MemoryStore>;
  /** Called when the primary is replaced. */
  readonly createFallback: () => MemoryStore;
  /** Called once, with the reason for the fallback. */
  readonly report: (message: string) => void;
  /** Consecutive failures before the fallback. Default 3. */
  readonly maxFailures?: number;
  /** For records that the fallback has to build. Default: none, callers build them. */
  readonly sha256?: Sha256;
  /** Errors of the disk; others are thrown. Default: `io` and `disk_full`. */
  readonly causes?: readonly ErrorCode[];
}

/** A store that may have been replaced by one in memory. */
export interface FallbackStore extends MemoryStore {
  /** Why data is in memory only; null: it is not. */
  degraded(): string | null;
}

/** Methods that are only forwarded. */
const FORWARDED = ['put', 'get', 'find', 'count', 'nearest', 'match', 'delete', 'putEdges', 'edgesOf', 'deleteEdges', 'sweepExpired', 'checkIntegrity'] as const; // prettier-ignore
type Forwarded = Pick<MemoryStore, (typeof FORWARDED)[number]>;

/**
 * A store that continues in memory when its disk fails: at once when it cannot be opened, otherwise after several consecutive
 * failures, each of which is thrown. It never switches back, because two memories would have to be merged.
 */
export async function createFallbackStore(options: FallbackStoreOptions): Promise<FallbackStore> {
  const { openPrimary, createFallback, report, sha256, maxFailures = 3, causes = ['io', 'disk_full'] } = options;
  let primary: MemoryStore | null = null;
  let fallback: { readonly store: MemoryStore; readonly reason: string } | null = null;
  let numFailures = 0;
  let isClosed = false;

  const isCause = (error: unknown): boolean => error instanceof RuvLLMError && causes.includes(error.code);

  function giveUp(error: unknown, doing: string): MemoryStore {
    const reason = `${doing}: ${error instanceof Error ? error.message : String(error)}`;
    fallback ??= { store: createFallback(), reason };
    report(`the memory is kept in this process only and is lost when it ends, because ${reason}`);
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
      // Many calls may wait for the same disk: one of them switches for all.
      if (fallback === null && ++numFailures < maxFailures) throw error;
      return call(fallback === null ? giveUp(error, `the disk failed ${numFailures} times`) : currentFallback());
    }
  }
  const building = (store: MemoryStore): MemoryStore =>
    store.putBuilt === undefined ? withBuilders(store, sha256!) : store;
  const currentFallback = (): MemoryStore => fallback!.store;

  try {
    primary = await openPrimary();
  } catch (error) {
    if (!isCause(error)) throw error;
    giveUp(error, 'it cannot be opened');
  }

  const forwarded = Object.fromEntries(
    FORWARDED.map((name) => [name, (...args: never[]) => run((store) => (store[name] as (...values: never[]) => Promise<unknown>)(...args))]), // prettier-ignore
  ) as unknown as Forwarded;

  return {
    degraded: () => fallback?.reason ?? null,
    ...forwarded,
    ...(sha256 === undefined ? {} : { putBuilt: (...args) => run((store) => building(store).putBuilt!(...args)) }),
    async eraseTenant(tenant) {
      if (fallback === null) return primary!.eraseTenant(tenant); // a failure must be seen
      await fallback.store.eraseTenant(tenant);
      throw new RuvLLMError('io', `the tenant is erased in this process but not on disk: ${fallback.reason}`);
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
