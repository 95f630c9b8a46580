import { RuvLLMError } from '../../core/errors.ts';
import type { BackupReport } from '../../memory/remote/protocol.ts';
import { expandHome } from '../../platform/node/files/paths.ts';
import { readOrCreateMasterKey } from '../../platform/node/sealing/master-key.ts';
import { type MasterSource, masterSourceOf } from '../../platform/node/sealing/master-source.ts';
import { type Actions, foreignFlag } from '../actions.ts';
import type { CommandContext } from '../command.ts';
import { defineFlags } from '../flags.ts';
import { formatBytes } from '../format.ts';
import { requiresError } from '../usage-error.ts';
import { readTime } from '../values.ts';
import { memoryAction } from './action.ts';
import { explainLock } from './explain-lock.ts';
import { memoryPlace } from './memory-place.ts';
import { dateOf } from './show.ts';

/** The folder of a memory that no process may have open. */
async function readFolder(
  context: CommandContext,
  action: string,
): Promise<{ folder: string; masterKey: MasterSource }> {
  const { defaultMasterKeyPath } = await import('../../node/kept-state.ts');
  const { defaultMemoryFolder } = await import('../../node/memory/default-folders.ts');
  const { values, io } = context;
  for (const name of ['--tenant', '--url', '--model']) {
    if (values[name] !== undefined) throw foreignFlag(name, 'memory', action);
  }
  const place = (memoryPlace(context) as string | undefined) ?? defaultMemoryFolder();
  if (/^postgres(ql)?:/.test(place)) throw requiresError(`memory ${action}`, 'a memory in a folder');
  const masterKey = masterSourceOf(io.environment) ?? { key: readOrCreateMasterKey(defaultMasterKeyPath()) };
  return { folder: expandHome(place), masterKey };
}

/** Checks, repairs, backs up and restores a memory. */
export const BACKUP_ACTIONS: Actions = {
  check: memoryAction<{ isIntact: boolean; problems: string[] }>('memory.check', {
    description: 'read all data and say what is damaged or missing; exits with 1 if anything is',
    show({ isIntact, problems }, { output }) {
      if (!isIntact) {
        throw new RuvLLMError('io', problems.join('; '), {
          data: { problems, next: 'stop the server, then run ruvllm memory repair, or ruvllm memory restore BACKUP' },
        });
      }
      output.lines('intact');
    },
  }),
  repair: {
    args: '',
    description:
      'rebuild the database from all readable records and accept the loss of the others; keeps the old files',
    async run(context) {
      const { openMemoryStore } = await import('../../node/memory/open-memory-store.ts');
      const { folder, masterKey } = await readFolder(context, 'repair');
      try {
        const { store, recovered } = openMemoryStore({
          folder,
          masterKey,
          isRepair: true,
          createIndex: () => Promise.reject(new RuvLLMError('internal', 'a repair needs no index')),
        });
        await store.close();
        context.output.document({ folder, report: recovered });
        context.output.lines(recovered ?? '');
      } catch (error) {
        throw explainLock(error);
      }
    },
  },
  backup: memoryAction<BackupReport>('memory.backup', {
    description: 'write a verified, encrypted backup of the memory and the API keys; with --url, of a running server',
    show({ path, numRecords, sizeBytes }, { output }) {
      output.lines(path);
      output.note(
        `${numRecords} records, ${formatBytes(sizeBytes)}; the master key is not in it: keep a copy elsewhere`,
      );
    },
  }),
  restore: {
    args: '[backup]',
    description: 'put a backup in the place of the memory; the earlier state is kept beside it',
    flags: defineFlags({
      '--at <time>': ['of a folder of backups: the newest one up to this time', readTime],
      '--api-keys': 'also create API keys that are in the backup and missing here',
    }),
    async run(context, [backup]) {
      const { values, output } = context;
      const { restoreBackup } = await import('../../node/memory/restore-backup.ts');
      const { defaultBackupFolder } = await import('../../node/memory/default-folders.ts');
      const { defaultKeyFolder } = await import('../../node/server/key-folder.ts');
      const { folder, masterKey } = await readFolder(context, 'restore');
      try {
        const report = await restoreBackup({
          backup: expandHome(backup ?? defaultBackupFolder()),
          atMs: (values['--at'] as number | undefined) ?? null,
          folder,
          masterKey,
          apiKeyFolder: values['--api-keys'] === true ? defaultKeyFolder() : null,
        });
        output.document(report);
        output.lines(`restored ${report.numRecords} records of ${dateOf(report.createdMs)} from ${report.backup}`);
        if (values['--api-keys'] === true) output.note(`${report.numApiKeys} API keys created`);
        if (report.aside !== null) output.note(`the earlier state is in ${report.aside}`);
      } catch (error) {
        throw explainLock(error);
      }
    },
  },
};
