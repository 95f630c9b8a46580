import type { Memory } from '../../memory/memory.ts';
import { newestBackupMs } from '../../node/memory/back-up.ts';
import { defaultBackupFolder } from '../../node/memory/open-memory.ts';
import { type ScheduledBackups, scheduleBackups } from '../../node/memory/scheduled-backups.ts';
import { schedule } from '../../platform/node/process/schedule.ts';
import { expandHome } from '../../platform/node/files/paths.ts';
import type { CommandContext } from '../command.ts';

/** Backups of `--backup-every`; null: none are scheduled. */
export function startServedBackups({ values, output }: CommandContext, memory: Memory | null): ScheduledBackups | null {
  const everyMs = values['--backup-every'] as number | undefined;
  if (everyMs === undefined || memory === null) return null;
  const root = expandHome((values['--backup-dir'] as string | undefined) ?? defaultBackupFolder());
  return scheduleBackups({
    everyMs,
    write: () => memory.backup(),
    newestMs: newestBackupMs(root),
    now: Date.now,
    setTimer: schedule,
    report: (message) => output.note(`backup: ${message}`),
  });
}
