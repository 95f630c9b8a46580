import type { BackupReport } from '../../memory/remote/protocol.ts';
import { messageOf } from '../../core/errors.ts';

export interface ScheduledBackups {
  /** Why the last backup failed; null: it did not. */
  problem(): string | null;
  stop(): void;
}

interface ScheduleOptions {
  readonly everyMs: number;
  readonly write: () => Promise<BackupReport>;
  /** Of the newest backup, so that restarts do not postpone the next one; null: there is none. */
  readonly newestMs: number | null;
  readonly now: () => number;
  readonly setTimer: (task: () => void, delayMs: number) => () => void;
  readonly report: (message: string) => void;
}

/** A failed backup is tried again after this time, if the interval is not shorter. */
const RETRY_MS = 600_000;
/** Timers take no more. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/** Writes backups at intervals, the first one when it is due. */
export function scheduleBackups(options: ScheduleOptions): ScheduledBackups {
  const { everyMs, write, newestMs, now, setTimer, report } = options;
  let problem: string | null = null;
  let isStopped = false;
  let dueMs = newestMs === null ? now() : newestMs + everyMs;
  let cancel = (): void => {};

  function plan(): void {
    const delayMs = Math.min(MAX_DELAY_MS, Math.max(0, dueMs - now()));
    if (!isStopped) cancel = setTimer(() => void run(), delayMs);
  }

  async function run(): Promise<void> {
    if (now() < dueMs) return plan();
    try {
      const { path, numRecords } = await write();
      problem = null;
      dueMs = now() + everyMs;
      report(`${numRecords} records in ${path}`);
    } catch (error) {
      problem = messageOf(error);
      dueMs = now() + Math.min(everyMs, RETRY_MS);
      report(`failed: ${problem}`);
    }
    plan();
  }

  plan();
  return {
    problem: () => problem,
    stop() {
      isStopped = true;
      cancel();
    },
  };
}
