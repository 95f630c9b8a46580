import type { Clock } from '../../core/clock.ts';
import type { ErasurePart } from '../../core/erasure.ts';
import { LOWEST_PRIORITY, type Memory } from '../../runtime/lower-layers.ts';
import type { ServerLimits } from '../limits.ts';
import { type BatchRunner, createBatchRunner } from './batch-runner.ts';
import { type BatchStore, createBatchStore } from './batch-store.ts';
import { createBatchErasure } from './erase-batches.ts';
import { createFileStore, type FileStore } from './file-store.ts';
import type { SendLine } from './run-line.ts';
import { createSlots } from './slots.ts';
import { type Batch, BATCH_WINDOW_MS, isOpen } from './types.ts';

/** Files and batches of all tenants, and the lines that run. */
export interface Batches {
  readonly files: FileStore;
  /** The batches of a tenant, the oldest first. */
  readonly list: (tenant: string) => Promise<readonly Batch[]>;
  /** Null: not found. */
  readonly find: BatchStore['find'];
  /** Stores a batch and starts it. */
  create(tenant: string, batch: NewBatch): Promise<Batch>;
  /** Ends a batch whose lines wait or run. The batch as it is then; null: not found. */
  cancel(tenant: string, id: string): Promise<Batch | null>;
  readonly runner: Pick<BatchRunner, 'numOpen' | 'numRunning'>;
  readonly erasure: ErasurePart;
  /** Stops the lines that run; the next process continues the batches. */
  close(): Promise<void>;
}

export type NewBatch = Pick<Batch, 'endpoint' | 'inputFileId' | 'keyId' | 'scopes' | 'metadata' | 'retentionMs'>;

interface BatchesContext {
  readonly memory: Pick<Memory, 'stored' | 'batches' | 'watch' | 'erasure'>;
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly send: SendLine;
  /** Called with errors from background work. */
  report(message: string): void;
}

export function createBatches({ memory, limits, clock, send, report }: BatchesContext): Batches {
  const records = memory.batches;
  const files = createFileStore({ records: memory.stored, batches: records, limits });
  const batches = createBatchStore({ records, limits });
  const runner = createBatchRunner({
    batches,
    files,
    records,
    limits,
    clock,
    slots: createSlots(limits.batchConcurrency),
    send,
    priority: LOWEST_PRIORITY,
    owner: crypto.randomUUID(),
    isShared: memory.watch === null,
    isErasing: memory.erasure.isErasing,
    report,
  });
  return {
    files,
    list: (tenant) => batches.list(tenant),
    find: batches.find,
    async create(tenant, batch) {
      const nowMs = clock.wallClock();
      const created: Batch = {
        ...batch,
        id: `batch_${crypto.randomUUID()}`,
        status: 'validating',
        outputFileId: `file-${crypto.randomUUID()}`,
        errorFileId: `file-${crypto.randomUUID()}`,
        createdMs: nowMs,
        windowEndMs: nowMs + BATCH_WINDOW_MS,
        times: { validating: nowMs },
        numFileLines: 0,
        numRequests: 0,
        numSucceeded: 0,
        numFailed: 0,
        isExpired: false,
        outputBytes: 0,
        errorBytes: 0,
        errors: [],
        lease: null,
      };
      await batches.create(tenant, created);
      runner.notice(tenant, created);
      return created;
    },
    async cancel(tenant, id) {
      const nowMs = clock.wallClock();
      const batch = await batches.change(tenant, id, (now) =>
        now.status === 'validating' || now.status === 'in_progress'
          ? { ...now, status: 'cancelling', times: { ...now.times, cancelling: nowMs } }
          : null,
      );
      if (batch !== null && isOpen(batch)) runner.notice(tenant, batch);
      return batch;
    },
    runner,
    erasure: createBatchErasure({ files, batches, records, runner }),
    async close() {
      await runner.close();
      await files.settle();
    },
  };
}
