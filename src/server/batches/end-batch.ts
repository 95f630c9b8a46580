import { addResults, type BatchJob, type RunBatchContext } from './batch-job.ts';
import type { StoredFile } from './file-store.ts';
import { isEmptyLine, isInputLine, readLine } from './input-lines.ts';
import { missingLine } from './result-line.ts';
import { type Batch, type BatchStatus, isOpen } from './types.ts';

/** Results of one transaction. */
const CHUNK = 200;

type Persist = <T>(write: () => Promise<T>) => Promise<{ readonly value: T } | null>;

/**
 * Writes the end of a batch: an error for each line that did not run, the files with the results, the last status. Every step can be
 * repeated, because a killed process may have done a part of them. False: stopped.
 */
export async function endBatch(
  context: RunBatchContext,
  job: BatchJob,
  lines: readonly string[],
  persist: Persist,
): Promise<boolean> {
  const { batches, files, records, clock } = context;
  const { tenant, id } = job;
  const indexes = lines.flatMap((line, index) => (isEmptyLine(line) ? [] : [index]));
  const finished = await records.finished(tenant, id, indexes);
  const unrun = indexes.filter((index) => !finished.has(index));
  const begun = await persist(() =>
    batches.change(tenant, id, (batch) => {
      if (batch.status !== 'in_progress') return null; // cancelling, or begun before
      const times = { ...batch.times, finalizing: clock.wallClock() };
      return { ...batch, status: 'finalizing', times, isExpired: unrun.length > 0 };
    }),
  );
  if (begun === null) return false;
  const batch = begun.value;
  if (batch === null) return true; // deleted
  const reason = batch.status === 'cancelling' ? 'batch_cancelled' : 'batch_expired';
  for (let from = 0; from < unrun.length; from += CHUNK) {
    const results = unrun.slice(from, from + CHUNK).flatMap((line) => {
      const input = readLine(lines[line]!, batch.endpoint);
      return isInputLine(input) ? [missingLine({ line, ...input }, reason)] : [];
    });
    if ((await persist(() => addResults(context, batches, job, results))) === null) return false;
  }
  const written = await persist(async () => {
    const whole = await batches.find(tenant, id);
    if (whole === null) return null;
    const nowMs = clock.wallClock();
    for (const file of resultFiles(whole, nowMs)) await files.addResults(tenant, file);
    return batches.change(tenant, id, (now) => {
      if (!isOpen(now)) return null; // another process was faster
      const status = lastStatus(now);
      return { ...now, status, lease: null, times: { ...now.times, [status]: nowMs } };
    });
  });
  return written !== null;
}

function lastStatus({ status, isExpired }: Batch): BatchStatus {
  if (status === 'cancelling') return 'cancelled';
  return isExpired ? 'expired' : 'completed';
}

/** The files of a batch that has ended; a file without lines does not exist. */
function resultFiles(batch: Batch, nowMs: number): readonly StoredFile[] {
  const { id, windowEndMs, retentionMs, numFileLines } = batch;
  const rows = [
    { fileId: batch.outputFileId, isErrors: false, name: 'output', numBytes: batch.outputBytes },
    { fileId: batch.errorFileId, isErrors: true, name: 'error', numBytes: batch.errorBytes },
  ];
  return rows.flatMap(({ fileId, isErrors, name, numBytes }) =>
    numBytes === 0
      ? []
      : [
          {
            id: fileId,
            name: `${id}_${name}.jsonl`,
            purpose: 'batch_output' as const,
            numBytes,
            createdMs: nowMs,
            // Not later than its results.
            expiresMs: Math.min(nowMs, windowEndMs) + retentionMs,
            batch: { id, isErrors, numFileLines },
          },
        ],
  );
}
