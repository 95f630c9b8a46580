import { type KeyObject, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { SCHEMA_VERSION } from '../../../memory/store/sqlite/schema.ts';
import type { TenantKeyRing } from '../../../memory/store/sealer.ts';
import { toFileError } from '../files/file-errors.ts';
import { listNames, makeFolder, removeAbandoned, removeQuietly, type Files } from '../sealing/atomic-files.ts';
import { createFolderSecrets, openFolderSecrets, replaceFolderSecrets, type FolderSecrets } from '../sealing/folder-secrets.ts'; // prettier-ignore
import { openKeyFiles } from '../sealing/key-files.ts';
import { derivePurpose } from '../sealing/key-ring.ts';
import type { MasterSource } from '../sealing/master-source.ts';
import { KEY_BYTES } from '../sealing/sealing.ts';
import { lockFolder } from './folder-lock.ts';
import { createTenantKeyRing } from './tenant-sealers.ts';

export interface MemoryFolderOptions {
  readonly folder: string;
  readonly masterKey: MasterSource;
  readonly files: Files;
  /** Cost of new passphrases; for tests. */
  readonly scryptN?: number;
}

/** A folder with keys and a database that is locked for us. */
export interface MemoryFolder {
  readonly databasePath: string;
  readonly keys: TenantKeyRing;
  /** For files of a tenant's own; null: it has no key. */
  sealingKeyOf(tenantId: string): KeyObject | null;
  /** From the first step on only the new key opens the folder; whatever is left to do then is done at the next opening. */
  rotateMasterKey(to: MasterSource): void;
  requireHeld(): void;
  diskBytes(): number;
  /** Asked after a failed write, for one of the drivers does not say why it failed. */
  isDiskFull(): boolean;
  release(): void;
}

/** More than SQLite writes at once. */
const PROBE_BYTES = 65_536;

/** Opens or makes the folder. A wrong key and a newer version are refused before anything is read or touched. */
export function openMemoryFolder({ folder, masterKey, files, scryptN }: MemoryFolderOptions): MemoryFolder {
  const headerPath = join(folder, 'memory.json');
  const databasePath = join(folder, 'memory.db');
  const options = { version: SCHEMA_VERSION, ...(scryptN === undefined ? {} : { scryptN }) };
  const isNew = !files.existsSync(headerPath);
  if (isNew) {
    const left = [databasePath, join(folder, 'keys')].find((path) => files.existsSync(path));
    if (left !== undefined) {
      throw new RuvLLMError('io', `${headerPath} is missing, and without it ${left} cannot be read`, { data: { path: headerPath } }); // prettier-ignore
    }
    prepareFolder(files, folder);
  } else openFolderSecrets(files, headerPath, masterKey, options);

  const lock = lockFolder(files, folder);
  try {
    if (isNew) createFolderSecrets(files, headerPath, masterKey, options);
    let secrets = openFolderSecrets(files, headerPath, masterKey, options); // again: it may have been rotated before we had the lock
    // A tenant has a key from its first row on: without the rows this is a memory that was lost, and no new one.
    if (!files.existsSync(databasePath) && listNames(files, join(folder, 'keys')).length > 0) {
      throw new RuvLLMError('io', `${databasePath} is missing, and there are keys of tenants who had rows in it`, { data: { path: databasePath } }); // prettier-ignore
    }
    const keyFiles = openKeyFiles(files, folder, wrappingOf(secrets));
    removeLeftovers(files, folder, databasePath);

    const finishRotation = (source: MasterSource): void => {
      keyFiles.rewrap(wrappingOf(secrets));
      secrets = { ...secrets, previous: null };
      replaceFolderSecrets(files, headerPath, source, secrets, options);
    };
    if (secrets.previous !== null) finishRotation(masterKey);

    return {
      databasePath,
      keys: createTenantKeyRing(secrets.naming, keyFiles),
      sealingKeyOf: (tenantId) => keyFiles.find(tenantId)?.sealing ?? null,
      rotateMasterKey(to) {
        lock.requireHeld();
        const next = { naming: secrets.naming, wrapping: randomBytes(KEY_BYTES), previous: secrets.wrapping };
        replaceFolderSecrets(files, headerPath, to, next, options);
        secrets = next;
        finishRotation(to);
      },
      requireHeld: lock.requireHeld,
      diskBytes: () => sizeOf(files, folder),
      isDiskFull: () => isDiskFull(files, folder),
      release: lock.release,
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

const wrappingOf = ({ wrapping, previous }: FolderSecrets) =>
  [wrapping, ...(previous === null ? [] : [previous])].map((secret) => derivePurpose(secret, 'wrap keys of tenants'));

function prepareFolder(files: Files, folder: string): void {
  try {
    makeFolder(files, folder, true);
  } catch (error) {
    throw toFileError(error, 'making the folder', folder);
  }
}

/** Of processes that were killed: temporary files, and the lock of the driver, which nobody can hold while we have the folder. */
function removeLeftovers(files: Files, folder: string, databasePath: string): void {
  try {
    for (const path of [folder, join(folder, 'keys'), join(folder, 'archive')])
      removeAbandoned(files, path, listNames(files, path));
    files.rmSync(`${databasePath}.lock`, { recursive: true, force: true });
  } catch (error) {
    throw toFileError(error, 'tidying', folder);
  }
}

function sizeOf(files: Files, folder: string): number {
  let sum = 0;
  for (const name of files.readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const stat = files.statSync(join(folder, name), { throwIfNoEntry: false });
    if (stat?.isFile() === true) sum += stat.size;
  }
  return sum;
}

function isDiskFull(files: Files, folder: string): boolean {
  const path = join(folder, `probe-${randomBytes(6).toString('hex')}`);
  try {
    files.writeFileSync(path, Buffer.alloc(PROBE_BYTES), { mode: 0o600 });
    return false;
  } catch (error) {
    return toFileError(error, 'probing', path).code === 'disk_full';
  } finally {
    removeQuietly(files, path); // what the disk says of that is not what was asked
  }
}
