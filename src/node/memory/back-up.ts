import * as nodeFiles from 'node:fs';
import { join } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import type { BackupPlace, BackupReport } from '../../memory/remote/protocol.ts';
import { numberOf } from '../../memory/store/row-values.ts';
import type { SqliteStore } from '../../memory/store/sqlite/sqlite-store.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import { backupName, copyMissing, listBackups, pruneBackups, sealApiKeys, verifyBackup, writeManifest } from '../../platform/node/memory/backup-files.ts'; // prettier-ignore
import type { MemoryFolder } from '../../platform/node/memory/memory-folder.ts';
import { openStateHead } from '../../platform/node/memory/state-head.ts';
import { flushFolder, makeFolder, type Files } from '../../platform/node/sealing/atomic-files.ts';
import { headerCopyOf } from '../../platform/node/sealing/folder-secrets.ts';
import type { Checkpoints } from './checkpoints.ts';
import { openDatabase, type SqliteDriver } from './open-database.ts';

export interface BackupRequest extends BackupPlace {
  /** Records of API keys. Null: not included. */
  readonly apiKeyFolder: string | null;
}

interface BackupContext {
  readonly store: SqliteStore;
  readonly folder: MemoryFolder;
  readonly checkpoints: Checkpoints;
  readonly driver: SqliteDriver;
  readonly files?: Files;
  readonly now: () => number;
}

/**
 * Copies the memory while it is in use. After a checkpoint the database file is complete and nothing writes to it until the next
 * one, because commits go to the log: reads and writes continue during the copy. The result gets its name when it is verified.
 */
export async function backUp(context: BackupContext, request: BackupRequest): Promise<BackupReport> {
  const { store, folder, checkpoints, files = nodeFiles, now } = context;
  const { root, keep, apiKeyFolder } = request;
  const createdMs = now();
  const path = join(root, backupName(createdMs));
  const draft = `${path}.draft`;
  const target = join(draft, 'memory');
  const copyArchive = () => copyMissing(files, join(folder.path, 'archive'), join(target, 'archive'));
  try {
    makeFolder(files, target, true);
    await copyArchive(); // also before: a segment may be deleted right after the snapshot
    await store.state.flush();
    const release = checkpoints.hold();
    const head = store.state.head();
    let isUntouched: boolean;
    try {
      await files.promises.copyFile(folder.databasePath, join(target, 'memory.db'));
    } finally {
      isUntouched = release();
    }
    if (!isUntouched)
      throw new RuvLLMError('io', 'the disk failed during the backup; try again', { isRetryable: true });
    await copyArchive();
    await copyMissing(files, join(folder.path, 'keys'), join(target, 'keys'));
    const headerPath = join(folder.path, 'memory.json');
    for (const name of [headerPath, headerCopyOf(headerPath)]) files.copyFileSync(name, join(target, name.slice(folder.path.length + 1))); // prettier-ignore
    const copiedHead = openStateHead(files, target, folder.keyFor('seal the head of the memory'));
    copiedHead.replace(head);
    copiedHead.close();
    if (apiKeyFolder !== null) sealApiKeys(files, apiKeyFolder, draft, folder);
    checkCopy(context, target, head.numRecords);
    await writeManifest(files, draft, folder, { createdMs, numRecords: head.numRecords, numCommits: head.numCommits });
    const manifest = await verifyBackup(files, draft, folder);
    files.renameSync(draft, path);
    flushFolder(files, root);
    if (keep !== null) pruneBackups(files, root, keep);
    const sizeBytes = manifest.files.reduce((sum, file) => sum + file.sizeBytes, 0);
    return { path, createdMs, numRecords: head.numRecords, sizeBytes };
  } catch (error) {
    files.rmSync(draft, { recursive: true, force: true });
    throw toFileError(error, 'writing the backup', path);
  }
}

/** The copy opens and has all records. */
function checkCopy({ driver, files = nodeFiles, folder }: BackupContext, target: string, numRecords: number): void {
  const { database } = openDatabase(join(target, 'memory.db'), { driver, files, isDiskFull: folder.isDiskFull });
  try {
    const count = numberOf(database.prepare('SELECT count(*) AS n FROM record').all()[0]?.['n']);
    if (count !== numRecords) throw new RuvLLMError('io', `the copy has ${count} of ${numRecords} records`);
  } finally {
    database.close();
  }
}

/** When the newest backup was made; null: never. */
export const newestBackupMs = (root: string): number | null => listBackups(nodeFiles, root).at(-1)?.createdMs ?? null;
