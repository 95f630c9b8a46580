import { delay } from '../../core/clock.ts';
import type { LineResult } from '../../runtime/lower-layers.ts';
import { addResults, type BatchJob, LEASE_MS, type RunBatchContext, withLease } from './batch-job.ts';
import { endBatch } from './end-batch.ts';
import { checkLines, divideLines, isEmptyLine, isInputLine, readLine } from './input-lines.ts';
import { answeredLine } from './result-line.ts';
import { runLine } from './run-line.ts';
import { type Batch, isOpen } from './types.ts';
import { messageOf } from '../../core/errors.ts';

const RETRY_MS = 5000;

/** Whether the batch has ended; false: it was stopped, or another process runs it. */
export async function runBatch(context: RunBatchContext, job: BatchJob): Promise<boolean> {
  const { batches, files, records, clock } = context;
  const { tenant, id } = job;
  const nowMs = clock.wallClock();
  let isForeign = false;
  const claimed = await batches.change(tenant, id, (batch) => {
    isForeign = isLeasedTo(context, batch, nowMs);
    return isForeign || !isOpen(batch) ? null : withLease(context, batch);
  });
  if (claimed === null || !isOpen(claimed)) return true;
  if (isForeign) return false;
  const text = await files.readText(tenant, claimed.inputFileId);
  // Null: expired, or erased with its tenant.
  const lines = text === null ? [] : divideLines(text);
  const batch = claimed.numFileLines === 0 ? await validate(context, job, claimed, lines) : claimed;
  if (batch === null || !isOpen(batch)) return true;
  const indexes = lines.flatMap((line, index) => (isEmptyLine(line) ? [] : [index]));
  const finished = await records.finished(tenant, id, indexes);
  const pending = indexes.filter((index) => !finished.has(index));
  const release = watchBatch(context, job, batch);
  try {
    const isOver = clock.wallClock() >= batch.windowEndMs;
    if (batch.status === 'in_progress' && !isOver) await runLines(context, job, batch, lines, pending);
  } finally {
    release();
  }
  if (job.stop.signal.aborted) {
    // Another process need not wait for the lease.
    await batches.change(tenant, id, (now) => ({ ...now, lease: null })).catch(() => {});
    return false;
  }
  return endBatch(context, job, lines, (write) => persist(context, job, write));
}

const isLeasedTo = ({ isShared, owner }: RunBatchContext, { lease }: Batch, nowMs: number): boolean =>
  isShared && lease !== null && lease.owner !== owner && lease.untilMs > nowMs;

/** Interrupts the job at the end of its window; where others share the memory, extends the lease and looks for a cancellation. */
function watchBatch(context: RunBatchContext, job: BatchJob, { windowEndMs }: Batch): () => void {
  const { clock, isShared, batches, report } = context;
  const cancelEnd = clock.setTimer(Math.max(0, windowEndMs - clock.wallClock()), () => job.interrupt.abort());
  let cancelRenewal = (): void => {};
  const renew = (): void => {
    cancelRenewal = clock.setTimer(LEASE_MS / 4, () => {
      batches
        .change(job.tenant, job.id, (batch) => withLease(context, batch))
        .then((batch) => {
          if (batch?.status !== 'in_progress') job.interrupt.abort();
        })
        .catch((error: unknown) => report(`extending the lease of ${job.id} failed: ${messageOf(error)}`))
        .finally(renew);
    });
  };
  if (isShared) renew();
  return () => {
    cancelEnd();
    cancelRenewal();
  };
}

/** Checks the file once. Null: the batch was deleted. */
async function validate(
  context: RunBatchContext,
  job: BatchJob,
  { endpoint }: Batch,
  lines: readonly string[],
): Promise<Batch | null> {
  const { limits, clock, batches } = context;
  const { numRequests, errors } = await checkLines(lines, { endpoint, maxLines: limits.maxBatchLines, clock });
  const nowMs = clock.wallClock();
  return batches.change(job.tenant, job.id, (batch) => {
    const isCancelling = batch.status === 'cancelling';
    if (errors.length > 0) {
      const status = isCancelling ? 'cancelled' : 'failed';
      return { ...batch, status, errors, lease: null, times: { ...batch.times, [status]: nowMs } };
    }
    const counted = { ...batch, numRequests, numFileLines: lines.length };
    if (isCancelling) return counted;
    return { ...counted, status: 'in_progress', times: { ...batch.times, in_progress: nowMs } };
  });
}

/** Runs lines until all have a result, or until the job is interrupted. */
async function runLines(
  context: RunBatchContext,
  job: BatchJob,
  batch: Batch,
  lines: readonly string[],
  pending: readonly number[],
): Promise<void> {
  const { slots } = context;
  const { signal } = job.interrupt;
  const write = createResultWriter(context, job);
  const running = new Set<Promise<void>>();
  for (const line of pending) {
    // A batch asks for one place at a time, so that batches of several tenants share them.
    const leave = await slots.enter(signal);
    if (leave === null) break;
    const work = runOne({ context, job, batch, write }, line, lines[line]!).finally(() => {
      leave();
      running.delete(work);
    });
    running.add(work);
  }
  await Promise.all(running);
}

interface RunContext {
  readonly context: RunBatchContext;
  readonly job: BatchJob;
  readonly batch: Batch;
  readonly write: (result: LineResult) => Promise<void>;
}

async function runOne({ context, job, batch, write }: RunContext, line: number, text: string): Promise<void> {
  const { send, clock, priority, isErasing } = context;
  const { tenant, id } = job;
  const { endpoint, keyId, scopes } = batch;
  const input = readLine(text, endpoint);
  if (!isInputLine(input)) return; // validated before; an erased line is empty
  const caller = { tenant, keyId, scopes, priority, batchId: id };
  const outcome = await runLine(input, { send, clock, caller, endpoint, signal: job.interrupt.signal });
  if (outcome === null) return;
  const { customId, userId } = input;
  if (isErasing({ tenant, userId, requestId: outcome.requestId })) return;
  await write(answeredLine({ line, customId, userId }, outcome));
}

/** Writes results; those that come during a transaction share the next one, because each waits for the disk. */
function createResultWriter(context: RunBatchContext, job: BatchJob): RunContext['write'] {
  let waiting: LineResult[] = [];
  let last = Promise.resolve();
  return (result) => {
    waiting.push(result);
    if (waiting.length > 1) return last;
    const writeAll = async (): Promise<void> => {
      const results = waiting;
      waiting = [];
      const next = await persist(context, job, () => addResults(context, context.batches, job, results));
      // Cancelled through another process, or deleted.
      if (next?.value?.status !== 'in_progress') job.interrupt.abort();
    };
    return (last = last.then(writeAll));
  };
}

/** Repeats a write while the memory cannot be reached; null: the job was stopped. */
async function persist<T>(
  { clock, report }: RunBatchContext,
  { id, stop }: BatchJob,
  write: () => Promise<T>,
): Promise<{ readonly value: T } | null> {
  for (let numTries = 0; !stop.signal.aborted; numTries++) {
    try {
      return { value: await write() };
    } catch (error) {
      // Once: a full disk would fill the log as well.
      if (numTries === 0) report(`writing results of ${id} failed, and is repeated: ${messageOf(error)}`);
    }
    await delay(clock, RETRY_MS, stop.signal);
  }
  return null;
}
