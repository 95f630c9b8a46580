import { onAbort } from '../../core/abort.ts';
import { messageOf } from '../../core/errors.ts';
import { type BatchJob, LEASE_MS, type RunBatchContext } from './batch-job.ts';
import { runBatch } from './run-batch.ts';
import type { Batch } from './types.ts';

/** Runs the batches of all tenants in the background: of each tenant one at a time, the oldest first. */
export interface BatchRunner {
  /** Starts a new batch, or ends one that was cancelled. */
  notice(tenant: string, batch: Pick<Batch, 'id' | 'status' | 'createdMs' | 'windowEndMs'>): void;
  /** Runs a task while no batch of the tenant runs; afterwards they continue, unless the task erased them. */
  withPause(tenant: string, task: () => Promise<void>, continues: boolean): Promise<void>;
  /** Batches that run now. */
  readonly numRunning: number;
  /** Batches that have not ended. */
  readonly numOpen: number;
  /** Stops all; the next process continues them. */
  close(): Promise<void>;
}

interface OpenBatch extends Pick<Batch, 'id' | 'createdMs' | 'windowEndMs'> {
  readonly tenant: string;
  /** Cancelled: it ends beside the one that runs. */
  isCancelled: boolean;
  /** By the monotonic clock. */
  notBeforeMs: number;
  running: { readonly job: BatchJob; readonly done: Promise<void> } | null;
}

/** Tenants whose batches run at the same time: each has its input file in memory. */
const MAX_TENANTS = 16;
const RETRY_MS = 5000;
/** A timer of the process holds no more. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export function createBatchRunner(context: RunBatchContext): BatchRunner {
  const { clock, batches, records, isShared, report } = context;
  const open = new Map<string, OpenBatch>();
  const paused = new Map<string, number>();
  let isClosed = false;
  let cancelTimer = (): void => {};
  const keyOf = (tenant: string, id: string): string => JSON.stringify([tenant, id]);
  const isEnding = ({ isCancelled, windowEndMs }: OpenBatch): boolean =>
    isCancelled || windowEndMs <= clock.wallClock();

  const notice: BatchRunner['notice'] = (tenant, { id, status, createdMs, windowEndMs }) => {
    const key = keyOf(tenant, id);
    const one = open.get(key) ?? { tenant, id, createdMs, windowEndMs, isCancelled: false, notBeforeMs: 0, running: null }; // prettier-ignore
    open.set(key, one);
    if (status === 'cancelling') {
      one.isCancelled = true;
      one.running?.job.interrupt.abort();
    }
    schedule();
  };

  function start(one: OpenBatch): void {
    const stop = new AbortController();
    const interrupt = new AbortController();
    const unlink = onAbort(stop.signal, () => interrupt.abort());
    const job = { tenant: one.tenant, id: one.id, stop, interrupt };
    const done = runBatch(context, job)
      .catch((error: unknown) => {
        report(`batch ${one.id} failed, and is tried again: ${messageOf(error)}`);
        return false;
      })
      .then((hasEnded) => {
        unlink();
        one.running = null;
        if (hasEnded) open.delete(keyOf(one.tenant, one.id));
        else one.notBeforeMs = clock.now() + (isShared ? LEASE_MS / 2 : RETRY_MS);
        schedule();
      });
    one.running = { job, done };
  }

  function schedule(): void {
    cancelTimer();
    if (isClosed) return;
    const busy = new Set<string>();
    const all = [...open.values()].toSorted((a, b) => a.createdMs - b.createdMs);
    for (const one of all) if (one.running !== null && !isEnding(one)) busy.add(one.tenant);
    let nextMs = MAX_TIMER_MS;
    for (const one of all) {
      if (one.running !== null || paused.has(one.tenant)) continue;
      const waitMs = one.notBeforeMs - clock.now();
      const isFree = isEnding(one) || (!busy.has(one.tenant) && busy.size < MAX_TENANTS);
      if (waitMs <= 0 && isFree) {
        if (!isEnding(one)) busy.add(one.tenant);
        start(one);
        continue;
      }
      nextMs = Math.min(nextMs, Math.max(waitMs, 0) || one.windowEndMs - clock.wallClock());
    }
    if (nextMs < MAX_TIMER_MS) cancelTimer = clock.setTimer(Math.max(1, nextMs), schedule);
  }

  /** Reads the open batches of a tenant, also those of earlier processes. */
  async function read(tenant: string): Promise<void> {
    try {
      for (const batch of await batches.list(tenant, true)) notice(tenant, batch);
    } catch (error) {
      report(`reading batches failed: ${messageOf(error)}`);
    }
  }

  async function readAll(): Promise<void> {
    for (const tenant of records.tenants()) {
      if (isClosed) return;
      await read(tenant);
    }
    // Other processes create batches, too, and may be killed with theirs.
    if (isShared && !isClosed) clock.setTimer(LEASE_MS / 2, () => void (reading = readAll()));
  }
  let reading = readAll();

  async function stopJobs(jobs: readonly OpenBatch[]): Promise<void> {
    for (const { running } of jobs) running?.job.stop.abort();
    await Promise.all(jobs.map(({ running }) => running?.done));
  }

  return {
    notice,
    async withPause(tenant, task, continues) {
      paused.set(tenant, (paused.get(tenant) ?? 0) + 1);
      try {
        const own = [...open.values()].filter((one) => one.tenant === tenant);
        await stopJobs(own);
        for (const { id } of own) open.delete(keyOf(tenant, id));
        await task();
      } finally {
        const count = paused.get(tenant)! - 1;
        if (count > 0) paused.set(tenant, count);
        else paused.delete(tenant);
        if (continues) reading = reading.then(() => read(tenant));
      }
    },
    get numRunning() {
      return [...open.values()].filter(({ running }) => running !== null).length;
    },
    get numOpen() {
      return open.size;
    },
    async close() {
      isClosed = true;
      cancelTimer();
      await stopJobs([...open.values()]);
      await reading;
    },
  };
}
