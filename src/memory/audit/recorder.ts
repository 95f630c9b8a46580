import { messageOf, RuvLLMError } from '../../core/errors.ts';
import type { Eventually } from '../common/eventually.ts';
import type { Foreground } from '../common/foreground.ts';
import type { MemoryServices, Schedule } from '../common/services.ts';
import type { AuditInput } from '../schemas/audit.ts';
import type { MemoryStore } from '../types.ts';
import type { ResolvedAuditLogOptions } from './options.ts';
import { createAuditQueue, type QueuedEntry } from './queue.ts';
import { openRun, type AuditGap } from './runs.ts';
import { createAuditWriter } from './writer.ts';

export interface AuditStats {
  readonly numEnqueued: number;
  readonly numWritten: number;
  /** Dropped because the queue was full. */
  readonly numDropped: number;
  /** Dropped because they were invalid. */
  readonly numRefused: number;
  readonly numQueued: number;
  readonly queuedBytes: number;
  readonly numWaiting: number;
  /** Entries that are written but could not be linked into the graph. */
  readonly numLinksFailed: number;
  readonly lastError: string | null;
  /** Entries that earlier runs lost. */
  readonly gaps: readonly AuditGap[];
}

/** Accepts entries at once and writes them in batches. */
export interface AuditRecorder {
  /**
   * True: accepted; false: dropped and counted. Never throws or rejects. The log owns the entry from then on. With overflow
   * `wait` it returns a promise while the queue is full. `later`: computes further parts when the entry is written.
   */
  enqueue(tenant: string, entry: AuditInput, later?: LateParts): boolean | Promise<boolean>;
  readonly durability: ResolvedAuditLogOptions['durability'];
  /** Resolves when everything enqueued before is written; rejects when it cannot be. Concurrent calls share a write. */
  sync(): Promise<void>;
  /** The same, and links between entries are stored too. */
  flush(): Promise<void>;
  stats(): AuditStats;
  /** Writes the queue and ends the run; the next run reports unwritten entries as a gap. */
  close(): Promise<void>;
}

interface RecorderContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly schedule: Schedule;
  readonly options: ResolvedAuditLogOptions;
  /** Work that goes first. */
  readonly foreground: Foreground | null;
  /** Default: it is opened with a store that can be reached. */
  readonly eventually?: Eventually | undefined;
}

/** Shares of `batchMs`: entries are written from here on, giving way to requests, and from there on at once. */
const WRITE_AFTER = 0.5;
const URGENT_AFTER = 0.75;
/** A failing store is tried again after 1, 2, 4 … 32 batch times. */
const MAX_BACKOFF = 32;
/** How often to check whether the memory is idle enough to link entries. */
const LINK_EVERY_MS = 100;
/** Callers that may wait at once; beyond it entries are dropped even with `wait`. */
const MAX_WAITERS = 10_000;

/** Computes parts of an entry; null or a rejection: the entry is written as it is. */
export type LateParts = () => Promise<Partial<Pick<AuditInput, 'responseEmbedding' | 'estimate'>> | null>;

function inputBytes(input: AuditInput, hasLater: boolean): number {
  const { query, response, queryEmbedding, responseEmbedding, error } = input;
  const numQuery = queryEmbedding?.length ?? 0;
  const numFloats = numQuery + (hasLater ? numQuery : (responseEmbedding?.length ?? 0));
  return (query.length + response.length + (error?.message.length ?? 0)) * 2 + numFloats * 4 + 512;
}

type NewEntry = Omit<QueuedEntry, 'numDroppedBefore' | 'prepared' | 'takenMs'> & { readonly tenant: string };

/** Finds out what earlier runs lost, and starts a run of its own. */
export async function openAuditRecorder(context: RecorderContext): Promise<AuditRecorder> {
  const { store, services, schedule, options, foreground, eventually } = context;
  const queue = createAuditQueue({ maxEntries: options.queueEntries, maxBytes: options.queueBytes });
  const run = await openRun(store, services, options, eventually);
  const writer = createAuditWriter({ ...context, queue, run });
  const waiters: { item: NewEntry; resolve(isTaken: boolean): void }[] = [];
  /** Dropped since the last accepted entry, by tenant. */
  const droppedSince = new Map<string, number>();
  let numDropped = 0;
  let numRefused = 0;
  let cancelTimer: (() => void) | null = null;
  let timerMs = Infinity;
  let backoff = 1;
  let isClosed = false;
  let lastError: string | null = null;
  let working: Promise<void> | null = null;
  /** Callers that wait for everything, links included. */
  let numHurrying = 0;
  /** Callers that wait for entries only. */
  let numSyncing = 0;
  let cancelLinking = (): void => {};

  const wake = (delayMs: number): void => {
    if (isClosed || delayMs >= timerMs) return;
    cancelTimer?.();
    timerMs = delayMs;
    cancelTimer = schedule(() => {
      cancelTimer = null;
      timerMs = Infinity;
      work().catch(() => {}); // the stats have the reason, and it is scheduled again
    }, delayMs);
  };
  const take = ({ tenant, ...item }: NewEntry): void => {
    run.numEnqueued++;
    queue.push(tenant, { ...item, takenMs: services.now(), numDroppedBefore: droppedSince.get(tenant) ?? 0 });
    droppedSince.delete(tenant);
    // Not now: the caller must not pay for writing a batch.
    wake(queue.size >= options.batchEntries && backoff === 1 ? 0 : options.batchMs * WRITE_AFTER * backoff);
  };
  const admitWaiters = (): void => {
    while (waiters.length > 0 && queue.canPush(waiters[0]!.item.bytes)) {
      const { item, resolve } = waiters.shift()!;
      take(item);
      resolve(true);
    }
  };
  const noteDropped = (tenant: string): void => void droppedSince.set(tenant, (droppedSince.get(tenant) ?? 0) + 1);
  const drop = (tenant: string): false => {
    numDropped++;
    noteDropped(tenant);
    return false;
  };
  const wakeToLink = (): void => {
    cancelLinking();
    if (!isClosed) cancelLinking = schedule(() => void work().catch(() => {}), LINK_EVERY_MS);
  };
  const drain = async (): Promise<void> => {
    try {
      for (;;) {
        if (queue.size > 0) {
          const isUrgent =
            numHurrying + numSyncing > 0 || services.now() - queue.oldestMs() >= options.batchMs * URGENT_AFTER;
          if (!isUrgent) await foreground?.turn();
          await writer.writeBatch(isUrgent);
          backoff = 1;
          admitWaiters();
        } else if (numHurrying === 0 && (numSyncing > 0 || (foreground !== null && !foreground.isQuiet()))) {
          return wakeToLink(); // links cost more than entries and can wait
        } else if (!(await writer.linkBatch())) return;
      }
    } catch (error) {
      lastError = messageOf(error);
      backoff = Math.min(backoff * 2, MAX_BACKOFF);
      throw error;
    } finally {
      working = null;
      if (queue.size > 0) wake(options.batchMs * backoff);
    }
  };
  /** Deferred: a drain of an empty queue would end before `working` is set, and block later work. */
  const work = (): Promise<void> => (working ??= Promise.resolve().then(drain));
  /** Drains everything, without giving way to other work. */
  const finish = async (): Promise<void> => {
    numHurrying++;
    foreground?.release();
    try {
      // A running drain may have read the queue before the last entry came.
      await working?.catch(() => {});
      await work();
    } finally {
      numHurrying--;
    }
  };
  const sync = async (): Promise<void> => {
    numSyncing++;
    foreground?.release();
    try {
      await working?.catch(() => {});
      if (queue.size > 0) await work();
    } finally {
      numSyncing--;
    }
  };
  const enqueue = (tenant: string, input: AuditInput, later?: LateParts): boolean | Promise<boolean> => {
    const bytes = inputBytes(input, later !== undefined);
    if (isClosed || bytes > options.queueBytes) return drop(tenant);
    const item = { tenant, input, bytes, ...(later === undefined ? {} : { later }) };
    if (waiters.length === 0 && queue.canPush(bytes)) {
      take(item);
      return true;
    }
    if (options.overflow === 'drop' || waiters.length >= MAX_WAITERS) return drop(tenant);
    return new Promise((resolve) => void waiters.push({ item, resolve }));
  };
  const stopHeartbeat = run.startHeartbeat(schedule, () => working);

  return {
    enqueue(tenant, input, later) {
      try {
        return enqueue(tenant, input, later);
      } catch (error) {
        lastError = error instanceof Error ? error.message : 'an entry threw';
        numRefused++;
        noteDropped(tenant);
        return false;
      }
    },
    durability: options.durability,
    sync,
    flush: finish,
    stats: () => ({
      numEnqueued: run.numEnqueued,
      numWritten: run.numWritten,
      numDropped,
      numRefused: numRefused + run.numRefused,
      numLinksFailed: writer.numLinksFailed(),
      numQueued: queue.size,
      queuedBytes: queue.bytes,
      numWaiting: waiters.length,
      lastError,
      gaps: run.gaps,
    }),
    async close() {
      if (isClosed) throw new RuvLLMError('conflict', 'the audit log is already closed');
      try {
        await finish();
      } finally {
        isClosed = true;
        cancelTimer?.();
        cancelLinking();
        stopHeartbeat();
        for (const { item, resolve } of waiters.splice(0)) resolve(drop(item.tenant));
      }
      await run.close();
    },
  };
}
