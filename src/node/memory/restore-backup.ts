import * as nodeFiles from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { RuvLLMError } from '../../core/errors.ts';
import { SCHEMA_VERSION } from '../../memory/store/sqlite/schema.ts';
import { toFileError } from '../../platform/node/files/file-errors.ts';
import {
  type BackupManifest,
  listBackups,
  openApiKeys,
  verifyBackup,
} from '../../platform/node/memory/backup-files.ts';
import { lockFolder } from '../../platform/node/memory/folder-lock.ts';
import { flushFolder, makeFolder, type Files } from '../../platform/node/sealing/atomic-files.ts';
import { openFolderSecrets } from '../../platform/node/sealing/folder-secrets.ts';
import { derivePurpose } from '../../platform/node/sealing/key-ring.ts';
import type { MasterSource } from '../../platform/node/sealing/master-source.ts';
import { openKeyFolder } from '../server/key-folder.ts';

export interface RestoreOptions {
  /** A backup, or a folder of backups. */
  readonly backup: string;
  /** Of a folder of backups: the newest one up to this time. Null: the newest. */
  readonly atMs: number | null;
  /** The memory's folder. */
  readonly folder: string;
  readonly masterKey: MasterSource;
  /** API keys that the backup has and the folder does not are created again. Null: none. */
  readonly apiKeyFolder: string | null;
  readonly now?: () => number;
  readonly files?: Files;
}

export interface RestoreReport {
  readonly backup: string;
  readonly createdMs: number;
  readonly numRecords: number;
  readonly numApiKeys: number;
  /** Where the earlier state is; null: there was none. */
  readonly aside: string | null;
}

/** Puts a verified backup in the place of a memory that no process has open. The earlier state is kept aside. */
export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { files = nodeFiles, now = Date.now, masterKey, apiKeyFolder } = options;
  const backup = chooseBackup(files, resolve(options.backup), options.atMs);
  const folder = resolve(options.folder);
  const headerPath = join(backup, 'memory', 'memory.json');
  const { naming } = openFolderSecrets(files, headerPath, masterKey, { version: SCHEMA_VERSION });
  const keys = { keyFor: (purpose: string) => derivePurpose(naming, purpose) };
  const manifest: BackupManifest = await verifyBackup(files, backup, keys);
  const stamp = new Date(now()).toISOString().replaceAll(/[:.]/g, '-');
  const [draft, aside] = [`${folder}.restoring-${stamp}`, `${folder}.before-${stamp}`];
  const hadState = files.existsSync(folder);
  const lock = hadState ? lockFolder(files, folder) : null;
  try {
    makeFolder(files, dirname(folder), true);
    files.cpSync(join(backup, 'memory'), draft, { recursive: true });
    if (hadState) files.renameSync(folder, aside);
    files.renameSync(draft, folder);
    flushFolder(files, dirname(folder));
    const numApiKeys = apiKeyFolder === null ? 0 : restoreKeys(files, openApiKeys(files, backup, keys), apiKeyFolder);
    const { createdMs, numRecords } = manifest;
    return { backup, createdMs, numRecords, numApiKeys, aside: hadState ? aside : null };
  } catch (error) {
    files.rmSync(draft, { recursive: true, force: true });
    throw toFileError(error, 'restoring the backup', folder);
  } finally {
    lock?.release();
    for (const name of ['owner.lock', 'owner.lock.copy']) files.rmSync(join(aside, name), { force: true });
  }
}

function chooseBackup(files: Files, path: string, atMs: number | null): string {
  if (files.existsSync(join(path, 'backup.json'))) return path;
  const backups = listBackups(files, path).filter(({ createdMs }) => atMs === null || createdMs <= atMs);
  const newest = backups.at(-1);
  if (newest !== undefined) return newest.path;
  const which = atMs === null ? '' : ` up to ${new Date(atMs).toISOString()}`;
  throw new RuvLLMError('not_found', `no backup${which} in ${path}`, { data: { path } });
}

/** Only keys without a record: a key that was revoked since the backup stays revoked. */
function restoreKeys(files: Files, contents: Readonly<Record<string, string>>, folder: string): number {
  const records = openKeyFolder(folder, files);
  let count = 0;
  for (const [name, text] of Object.entries(contents)) {
    const id = /^([0-9a-f]{18})\.json$/.exec(name)?.[1];
    if (id === undefined || records.get(id) !== null) continue;
    const { version: _version, checksum: _checksum, ...record } = JSON.parse(text) as { version: number; checksum: string; revokedMs: null }; // prettier-ignore
    records.put(record as never);
    count++;
  }
  return count;
}
