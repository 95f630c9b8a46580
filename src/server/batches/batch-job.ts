import type { Clock } from '../../core/clock.ts';
import type { DataOwner } from '../../core/erasure.ts';
import type { BatchRecords, LineResult } from '../../runtime/lower-layers.ts';
import type { ServerLimits } from '../limits.ts';
import type { BatchStore } from './batch-store.ts';
import type { FileStore } from './file-store.ts';
import { countResults } from './result-line.ts';
import type { SendLine } from './run-line.ts';
import type { Slots } from './slots.ts';
import type { Batch } from './types.ts';

export interface RunBatchContext {
  readonly batches: BatchStore;
  readonly files: FileStore;
  readonly records: BatchRecords;
  readonly limits: Pick<ServerLimits, 'maxBatchLines'>;
  readonly clock: Clock;
  readonly slots: Slots;
  readonly send: SendLine;
  /** Of the lines' requests. */
  readonly priority: number;
  /** This process, among those that share the memory. */
  readonly owner: string;
  /** Whether other processes may run the batch. */
  readonly isShared: boolean;
  isErasing(owner: DataOwner): boolean;
  /** Called with errors from background work. */
  report(message: string): void;
}

/** A batch that runs in this process. */
export interface BatchJob {
  readonly tenant: string;
  readonly id: string;
  /** Ends the job without an end of the batch: the next one continues it. */
  readonly stop: AbortController;
  /** Ends the lines that run, because the batch was cancelled or its window is over; aborted by `stop` as well. */
  readonly interrupt: AbortController;
}

/** After this time another process may continue the batch of one that was killed. */
export const LEASE_MS = 60_000;

export function withLease({ owner, clock }: Pick<RunBatchContext, 'owner' | 'clock'>, batch: Batch): Batch {
  return { ...batch, lease: { owner, untilMs: clock.wallClock() + LEASE_MS } };
}

/** Adds results and their counts in one transaction. */
export function addResults(
  context: Pick<RunBatchContext, 'owner' | 'clock'>,
  batches: BatchStore,
  { tenant, id }: BatchJob,
  results: readonly LineResult[],
): Promise<Batch | null> {
  const count = (batch: Batch, added: readonly LineResult[]): Batch | null =>
    added.length === 0 ? null : withLease(context, countResults(batch, added));
  return batches.change(tenant, id, count, results);
}
