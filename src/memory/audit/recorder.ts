import { RuvLLMError } from '../../core/errors.ts';
import type { Foreground } from '../common/foreground.ts';
import type { MemoryServices, Schedule } from '../common/services.ts';
import type { AuditInput } from '../schemas/audit.ts';
import type { MemoryStore } from '../types.ts';
import { resolveAuditLogOptions, type AuditLogOptions } from './options.ts';
import { createAuditQueue, type QueuedEntry } from './queue.ts';
import { openRun } from './run-keeper.ts';
import type { AuditGap } from './runs.ts';
import { createAuditWriter } from './writer.ts';

export interface AuditStats {
  readonly numEnqueued: number;
  readonly numWritten: number;
  /** Given up because the queue was full. */
  readonly numDropped: number;
  /** Given up because nothing could be made of them. */
  readonly numRefused: number;
  readonly numQueued: number;
  readonly queuedBytes: number;
  readonly numWaiting: number;
  /** Links into the graph that failed; the entries themselves are there. */
  readonly numLinksFailed: number;
  readonly lastError: string | null;
  /** What runs before this one lost. */
  readonly gaps: readonly AuditGap[];
}

/** Takes what happened to each request, and writes it down a little later. */
export interface AuditRecorder {
  /**
   * True: taken; false: dropped and counted. Never throws and never rejects. The entry belongs to the log from then on. With overflow
   * `wait` a promise comes while the queue is full. `later`: the response's embedding, which the writing waits for.
   */
  enqueue(tenant: string, entry: AuditInput, later?: LateEmbedding): boolean | Promise<boolean>;
  /** Resolves when everything enqueued before is written; rejects with why it cannot be. */
  flush(): Promise<void>;
  stats(): AuditStats;
  /** Writes what is left and ends the run; what cannot be written is a gap for the next. */
  close(): Promise<void>;
}

export interface RecorderContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly schedule: Schedule;
  readonly options?: AuditLogOptions;
  /** Who goes first. Default: nobody does. */
  readonly foreground?: Foreground;
}

/** A store that fails is tried again after 1, 2, 4 … 32 batch times. */
const MAX_BACKOFF = 32;
/** How often it is looked whether it is quiet enough to link. */
const LINK_EVERY_MS = 100;
/** Callers that may wait at once; beyond it entries are dropped even under `wait`. */
const MAX_WAITERS = 10_000;

/** A vector that is still being made; null or a failure: there is none. */
export type LateEmbedding = Promise<Float32Array | null>;

function inputBytes(input: AuditInput, hasLater: boolean): number {
  const { query, response, queryEmbedding, responseEmbedding, error } = input;
  const numQuery = queryEmbedding?.length ?? 0;
  const numFloats = numQuery + (hasLater ? numQuery : (responseEmbedding?.length ?? 0));
  return (query.length + response.length + (error?.message.length ?? 0)) * 2 + numFloats * 4 + 512;
}

type NewEntry = Omit<QueuedEntry, 'numDroppedBefore' | 'prepared'> & { readonly tenant: string };

/** Opens the log: finds out what runs before this one lost, and starts a run of its own. */
export async function openAuditRecorder(context: RecorderContext): Promise<AuditRecorder> {
  const { store, services, schedule, options, foreground = null } = context;
  const resolved = resolveAuditLogOptions(options);
  const queue = createAuditQueue({ maxEntries: resolved.queueEntries, maxBytes: resolved.queueBytes });
  const run = await openRun({ store, services, options: resolved });
  const writer = createAuditWriter({ store, services, schedule, options: resolved, queue, run, foreground });
  const waiters: { item: NewEntry; resolve(isTaken: boolean): void }[] = [];
  /** Given up since the last entry that was taken, by tenant. */
  const droppedSince = new Map<string, number>();
  let numDropped = 0;
  let numRefused = 0;
  let cancelTimer: (() => void) | null = null;
  let timerMs = Infinity;
  let backoff = 1;
  let isClosed = false;
  let lastError: string | null = null;
  let working: Promise<void> | null = null;
  /** Who waits for everything, links too. */
  let numHurrying = 0;
  let cancelLinking = (): void => {};

  const wake = (delayMs: number): void => {
    if (isClosed || delayMs >= timerMs) return;
    cancelTimer?.();
    timerMs = delayMs;
    cancelTimer = schedule(() => {
      cancelTimer = null;
      timerMs = Infinity;
      work().catch(() => {}); // its reason is in the stats, and it has woken itself again
    }, delayMs);
  };
  const take = ({ tenant, ...item }: NewEntry): void => {
    run.numEnqueued++;
    queue.push(tenant, { ...item, numDroppedBefore: droppedSince.get(tenant) ?? 0 });
    droppedSince.delete(tenant);
    // Not at once: an entry must not pay for the writing of a batch.
    wake(queue.size >= resolved.batchEntries && backoff === 1 ? 0 : resolved.batchMs * backoff);
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
          if (numHurrying === 0) await foreground?.turn();
          await writer.writeBatch();
          backoff = 1;
          admitWaiters();
        } else if (numHurrying === 0 && foreground !== null && !foreground.isQuiet()) {
          return wakeToLink(); // links cost more than entries, and nobody misses them for a while
        } else if (!(await writer.linkBatch())) return;
      }
    } catch (error) {
      lastError = error instanceof Error ? error.message : String(error);
      backoff = Math.min(backoff * 2, MAX_BACKOFF);
      throw error;
    } finally {
      working = null;
      if (queue.size > 0) wake(resolved.batchMs * backoff);
    }
  };
  /** A drain of nothing would end before it is noted here, and stand for the work that comes later. */
  const work = (): Promise<void> => (working ??= Promise.resolve().then(drain));
  /** Everything, whoever else waits. */
  const finish = async (): Promise<void> => {
    numHurrying++;
    foreground?.release();
    try {
      // A drain that is at work may have looked at the queue before the last entry came.
      await working?.catch(() => {});
      await work();
    } finally {
      numHurrying--;
    }
  };
  const enqueue = (tenant: string, input: AuditInput, later?: LateEmbedding): boolean | Promise<boolean> => {
    const bytes = inputBytes(input, later !== undefined);
    if (isClosed || bytes > resolved.queueBytes) return drop(tenant);
    const item = { tenant, input, bytes, ...(later === undefined ? {} : { later: later.catch(() => null) }) };
    if (waiters.length === 0 && queue.canPush(bytes)) {
      take(item);
      return true;
    }
    if (resolved.overflow === 'drop' || waiters.length >= MAX_WAITERS) return drop(tenant);
    return new Promise((resolve) => void waiters.push({ item, resolve }));
  };
  const stopHeartbeat = run.startHeartbeat(schedule, () => working);

  return {
    enqueue(tenant, input, later) {
      try {
        return enqueue(tenant, input, later);
      } catch (error) {
        lastError = error instanceof Error ? error.message : 'an entry that throws';
        numRefused++;
        noteDropped(tenant);
        return false;
      }
    },
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
      if (isClosed) throw new RuvLLMError('conflict', 'the audit log is closed already');
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
