import type { Memory } from '../../memory/memory.ts';
import { schedule } from '../../platform/node/process/schedule.ts';
import { defaultBackupFolder } from '../../node/memory/default-folders.ts';
import type { ScheduledBackups } from '../../node/memory/scheduled-backups.ts';
import { expandHome } from '../../platform/node/files/paths.ts';
import type { CommandContext } from '../command.ts';

/** Backups of `--backup-every`; null: none are scheduled. */
export async function startServedBackups(
  { values, output }: CommandContext,
  memory: Memory | null,
): Promise<ScheduledBackups | null> {
  const everyMs = values['--backup-every'] as number | undefined;
  if (everyMs === undefined || memory === null) return null;
  const { newestBackupMs } = await import('../../node/memory/back-up.ts');
  const { scheduleBackups } = await import('../../node/memory/scheduled-backups.ts');
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
