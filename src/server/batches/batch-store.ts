import { RuvLLMError } from '../../core/errors.ts';
import { createSerialQueues } from '../../core/serial-queues.ts';
import type { BatchRecord, BatchRecords, LineResult } from '../../runtime/lower-layers.ts';
import type { ServerLimits } from '../limits.ts';
import { type Batch, isOpen } from './types.ts';

/** Batches of each tenant. */
export interface BatchStore {
  /** The oldest first; with `isOpen`, only those that have not ended. */
  list(tenant: string, isOpen?: true): Promise<readonly Batch[]>;
  /** Null: not found. */
  find(tenant: string, id: string): Promise<Batch | null>;
  /** `limit_exceeded`: the tenant has too many that have not ended. */
  create(tenant: string, batch: Batch): Promise<void>;
  /** Changes a batch and adds results in one transaction, see `BatchRecords.update`. Null: not found. */
  change(
    tenant: string,
    id: string,
    edit: (batch: Batch, added: readonly LineResult[]) => Batch | null,
    results?: readonly LineResult[],
  ): Promise<Batch | null>;
}

interface BatchStoreContext {
  readonly records: BatchRecords;
  readonly limits: Pick<ServerLimits, 'maxOpenBatches'>;
}

export function createBatchStore({ records, limits }: BatchStoreContext): BatchStore {
  const queues = createSerialQueues();
  const list: BatchStore['list'] = async (tenant, onlyOpen) =>
    (await records.list(tenant, onlyOpen)).map(batchOf).toSorted((a, b) => a.createdMs - b.createdMs);
  return {
    list,
    async find(tenant, id) {
      const record = await records.find(tenant, id);
      return record === null ? null : batchOf(record);
    },
    create: (tenant, batch) =>
      // One after another, because each counts the others.
      queues.run(tenant, async () => {
        const numOpen = (await list(tenant, true)).length;
        if (numOpen >= limits.maxOpenBatches) {
          throw new RuvLLMError(
            'limit_exceeded',
            `${numOpen} of your batches have not ended; the limit is ${limits.maxOpenBatches}. Cancel one or wait`,
            { data: { numOpen, limit: limits.maxOpenBatches } },
          );
        }
        await records.create(tenant, recordOf(batch));
      }),
    async change(tenant, id, edit, results = []) {
      // In this order: two writers of this process would repeat their reads until one of them gives up.
      return queues.run(JSON.stringify([tenant, id]), async () => {
        const record = await records.update(tenant, id, results, (old, added) => {
          const next = edit(batchOf(old), added);
          return next === null ? null : recordOf(next);
        });
        return record === null ? null : batchOf(record);
      });
    },
  };
}

const batchOf = ({ state }: BatchRecord): Batch => state as unknown as Batch;

function recordOf(batch: Batch): BatchRecord {
  const { id, windowEndMs, retentionMs } = batch;
  const state = batch as unknown as BatchRecord['state'];
  return { id, isOpen: isOpen(batch), expiresMs: windowEndMs + retentionMs, state };
}
