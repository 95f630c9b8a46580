import { retryConflict } from '../common/retry-conflict.ts';
import type { MemoryServices, Schedule } from '../common/services.ts';
import type { MemoryStore, PutRecord } from '../types.ts';
import type { ResolvedAuditLogOptions } from './options.ts';
import { runPut, takeLostRuns, type AuditGap, type AuditRun } from './runs.ts';

export interface RunContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  readonly options: Pick<ResolvedAuditLogOptions, 'stateTenant' | 'leaseMs'>;
}

/** The run of this log: a durable mark that it is open, renewed with each batch, taken away when it closes. */
export interface RunKeeper {
  readonly runId: string;
  readonly gaps: readonly AuditGap[];
  numEnqueued: number;
  numWritten: number;
  /** Enqueued, but nothing could be made of them. */
  numRefused: number;
  /** The mark as of a batch that writes `numWriting` entries, to go into the same call. */
  toPut(numWriting: number, isRepeated: boolean): Promise<PutRecord>;
  /** The call with that mark came through. */
  wasWritten(numWritten: number): void;
  /** Shows that it lives while nothing is written, where others look; the result stops it. */
  startHeartbeat(schedule: Schedule, whenIdle: () => Promise<void> | null): () => void;
  close(): Promise<void>;
}

export async function openRun({ store, services, options }: RunContext): Promise<RunKeeper> {
  const { stateTenant: tenant, leaseMs } = options;
  const openedMs = Math.floor(services.now());
  const gaps = await takeLostRuns({ store, tenant, nowMs: openedMs, leaseMs });
  const runId = services.newId();
  let version = 0;
  const current = (numWriting: number): AuditRun => ({
    runId,
    openedMs,
    lastSeenMs: Math.max(openedMs, Math.floor(services.now())),
    numEnqueued: keeper.numEnqueued,
    numSettled: keeper.numWritten + keeper.numRefused + numWriting,
    lostMs: null,
  });
  const readVersion = async (): Promise<void> => {
    const [record] = await store.get(tenant, [runId]);
    version = record?.version ?? 0;
  };
  const keeper: RunKeeper = {
    runId,
    gaps,
    numEnqueued: 0,
    numWritten: 0,
    numRefused: 0,
    async toPut(numWriting, isRepeated) {
      if (isRepeated) await readVersion();
      return runPut(tenant, current(numWriting), version);
    },
    wasWritten(numWritten) {
      version++;
      keeper.numWritten += numWritten;
    },
    startHeartbeat(schedule, whenIdle) {
      if (leaseMs === 0) return () => {};
      let isStopped = false;
      let cancel = (): void => {};
      const beat = async (): Promise<void> => {
        await whenIdle();
        await store.put([await keeper.toPut(0, true)]);
        version++;
      };
      const next = (): void => {
        if (!isStopped) cancel = schedule(() => void beat().catch(() => {}).finally(next), Math.ceil(leaseMs / 3)); // prettier-ignore
      };
      next();
      return () => {
        isStopped = true;
        cancel();
      };
    },
    async close() {
      await store.delete(tenant, [runId]);
    },
  };
  await retryConflict(async () => store.put([runPut(tenant, current(0), version)]));
  version = 1;
  return keeper;
}
