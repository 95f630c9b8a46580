import { messageOf, RuvLLMError } from '../../../core/errors.ts';
import type { MemoryStore } from '../../types.ts';
import { createInMemoryStore, type InMemoryStoreLimits } from '../in-memory/in-memory-store.ts';
import { decodeChange, encodeChange, type StoreChange } from './log-entry.ts';

/** A list of entries that outlives the program. */
export interface StoreLog {
  readonly sizeBytes: number;
  /** Appends an entry after those of earlier calls; it is on disk when the promise resolves. */
  append(entry: Uint8Array): Promise<void>;
  /** Replaces all entries in one step. */
  rewrite(entries: readonly Uint8Array[]): Promise<void>;
  close(): Promise<void>;
}

export interface LoggedStoreOptions {
  readonly log: StoreLog;
  /** The entries of the log, in their order. */
  readonly entries: Iterable<Uint8Array>;
  readonly now: () => number;
  readonly limits?: InMemoryStoreLimits;
  /** Called with problems that lose nothing of the rest. */
  readonly report: (message: string) => void;
}

/** A store whose records are all in memory, and whose changes are in a log. */
export interface LoggedStore extends MemoryStore {
  /** Rewrites the log, so that nothing deleted is left in it. */
  compact(): Promise<void>;
}

/** Below this size, old changes in the log do not matter. */
const MIN_COMPACT_BYTES = 4 << 20;
/** The log is rewritten when it has this many times the bytes after its last rewrite. */
const COMPACT_FACTOR = 3;
const RECORDS_PER_ENTRY = 256;

/** Opens a store from its log. A change is acknowledged when it is in the log. */
export async function openLoggedStore(options: LoggedStoreOptions): Promise<LoggedStore> {
  const { log, entries, now, limits, report } = options;
  const clock: { ms: number | null } = { ms: null };
  const inner = createInMemoryStore({ now: () => clock.ms ?? now(), ...(limits === undefined ? {} : { limits }) });

  function apply(change: StoreChange): Promise<unknown> {
    clock.ms = 'nowMs' in change ? change.nowMs : null;
    try {
      if (change.op === 'put') return inner.put(change.records);
      if (change.op === 'delete') return inner.delete(change.tenant, change.ids);
      if (change.op === 'putEdges') return inner.putEdges(change.tenant, change.edges);
      if (change.op === 'deleteEdges') return inner.deleteEdges(change.tenant, change.edges);
      if (change.op === 'sweep') return inner.sweepExpired(change.nowMs, change.limit);
      if (change.op === 'eraseTenant') return inner.eraseTenant(change.tenant);
      inner.restore(change.dump);
      return Promise.resolve();
    } finally {
      clock.ms = null;
    }
  }

  let numLost = 0;
  for (const entry of entries) {
    try {
      await apply(decodeChange(entry));
    } catch {
      numLost++; // the others do not depend on it, or are refused for the same reason
    }
  }
  if (numLost > 0) report(`${numLost} changes of the memory could not be repeated`);

  let baseBytes = log.sizeBytes;
  /** Why memory is ahead of the log; null: it is not. */
  let behind: string | null = null;

  async function compact(): Promise<void> {
    const { records, edges } = inner.dump();
    const changes: StoreChange[] = [];
    for (let at = 0; at < records.length; at += RECORDS_PER_ENTRY) {
      changes.push({ op: 'restore', dump: { records: records.slice(at, at + RECORDS_PER_ENTRY), edges: [] } });
    }
    changes.push({ op: 'restore', dump: { records: [], edges } });
    await log.rewrite(changes.map(encodeChange));
    baseBytes = log.sizeBytes;
    behind = null;
  }

  async function write(change: StoreChange): Promise<unknown> {
    const result = await apply(change);
    try {
      if (behind === null) await log.append(encodeChange(change));
      else await compact(); // with all changes that the log has missed
    } catch (error) {
      if (!(error instanceof RuvLLMError)) throw error;
      behind = error.message;
      const message = `the memory has this change only until the page is closed: ${error.message}`;
      throw new RuvLLMError(error.code, message, { cause: error, data: error.data, isRetryable: true });
    }
    if (log.sizeBytes > Math.max(MIN_COMPACT_BYTES, COMPACT_FACTOR * baseBytes)) {
      await compact().catch((error: unknown) => {
        report(`the log of the memory could not be rewritten: ${messageOf(error)}`);
      });
    }
    return result;
  }

  return {
    ...inner,
    compact,
    put: (records) => write({ op: 'put', nowMs: now(), records }) as ReturnType<MemoryStore['put']>,
    delete: (tenant, ids) => write({ op: 'delete', tenant, ids }) as Promise<number>,
    putEdges: (tenant, edges) => write({ op: 'putEdges', nowMs: now(), tenant, edges }) as Promise<void>,
    deleteEdges: (tenant, edges) => write({ op: 'deleteEdges', tenant, edges }) as Promise<number>,
    sweepExpired: (nowMs, limit) => write({ op: 'sweep', nowMs, limit }) as Promise<number>,
    async eraseTenant(tenant) {
      await write({ op: 'eraseTenant', tenant });
      await compact();
    },
    async stats(tenant) {
      const stats = await inner.stats(tenant);
      const reasons = [behind, stats.degraded].filter((reason) => reason !== null);
      return { ...stats, diskBytes: log.sizeBytes, degraded: reasons.length === 0 ? null : reasons.join('; ') };
    },
    async close() {
      await inner.close();
      await log.close();
    },
  };
}
