import { type KeyObject, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { SCHEMA_VERSION } from '../../../memory/store/sqlite/schema.ts';
import type { TenantKeyRing } from '../../../memory/store/sealer.ts';
import { toFileError } from '../files/file-errors.ts';
import { listNames, makeFolder, removeAbandoned, removeQuietly, type Files } from '../sealing/atomic-files.ts';
import {
  createFolderSecrets,
  headerCopyOf,
  openFolderSecrets,
  repairHeader,
  replaceFolderSecrets,
  type FolderSecrets,
} from '../sealing/folder-secrets.ts';
import { openKeyFiles } from '../sealing/key-files.ts';
import { derivePurpose } from '../sealing/key-ring.ts';
import type { MasterSource } from '../sealing/master-source.ts';
import { KEY_BYTES } from '../sealing/sealing.ts';
import { lockFolder } from './folder-lock.ts';
import { createTenantKeyRing } from './tenant-sealers.ts';

interface MemoryFolderOptions {
  readonly folder: string;
  readonly masterKey: MasterSource;
  readonly files: Files;
  /** Cost of new passphrases; for tests. */
  readonly scryptN?: number;
  /** Called with damage that was repaired. Default: none. */
  readonly report?: (message: string) => void;
}

/** A locked folder with keys and a database. */
export interface MemoryFolder {
  readonly path: string;
  readonly databasePath: string;
  /** A key that lasts as long as the folder. */
  keyFor(purpose: string): KeyObject;
  /** Whether tenants had rows before the folder was opened. */
  readonly hasTenantKeys: boolean;
  /** Moves a tenant's key file into `target`: it cannot be read, and a new one takes its place. */
  setKeyAside(tenantId: string, target: string): void;
  readonly keys: TenantKeyRing;
  /** For a tenant's files; null: no key. */
  sealingKeyOf(tenantId: string): KeyObject | null;
  /** Only the new key opens the folder from the first step on; the next opening finishes an interrupted rotation. */
  rotateMasterKey(to: MasterSource): void;
  requireHeld(): void;
  diskBytes(): number;
  /** For failed writes, because one of the drivers gives no reason. */
  isDiskFull(): boolean;
  release(): void;
}

/** More than a write of SQLite. */
const PROBE_BYTES = 65_536;

/** Opens or creates the folder. Refuses a wrong key or a newer version before it reads or changes anything. */
export function openMemoryFolder(given: MemoryFolderOptions): MemoryFolder {
  const { folder, masterKey, files, scryptN, report = () => {} } = given;
  const headerPath = join(folder, 'memory.json');
  const databasePath = join(folder, 'memory.db');
  const options = { version: SCHEMA_VERSION, ...(scryptN === undefined ? {} : { scryptN }) };
  const isNew = !files.existsSync(headerPath) && !files.existsSync(headerCopyOf(headerPath));
  if (isNew) {
    const left = [databasePath, join(folder, 'keys')].find((path) => files.existsSync(path));
    if (left !== undefined) {
      throw new RuvLLMError('io', `${headerPath} is missing; without it ${left} cannot be read`, { data: { path: headerPath } }); // prettier-ignore
    }
    prepareFolder(files, folder);
  } else openFolderSecrets(files, headerPath, masterKey, options);

  const lock = lockFolder(files, folder);
  try {
    if (isNew) createFolderSecrets(files, headerPath, masterKey, options);
    const repaired = repairHeader(files, headerPath, masterKey, options);
    if (repaired !== null) report(repaired);
    let secrets = openFolderSecrets(files, headerPath, masterKey, options); // again: it may have been rotated before we got the lock
    const hasTenantKeys = listNames(files, join(folder, 'keys')).length > 0;
    const keyFiles = openKeyFiles(files, folder, wrappingOf(secrets));
    removeLeftovers(files, folder, databasePath);

    const finishRotation = (source: MasterSource): void => {
      keyFiles.rewrap(wrappingOf(secrets));
      secrets = { ...secrets, previous: null };
      replaceFolderSecrets(files, headerPath, source, secrets, options);
    };
    if (secrets.previous !== null) finishRotation(masterKey);

    return {
      path: folder,
      databasePath,
      keyFor: (purpose) => derivePurpose(secrets.naming, purpose),
      hasTenantKeys,
      setKeyAside(tenantId, target) {
        const name = `${tenantId}.key`;
        const path = join(folder, 'keys', name);
        if (files.existsSync(path)) files.renameSync(path, join(target, name));
      },
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

/** Of killed processes: temporary files, and the driver's lock, which is free while we have the folder. */
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
    removeQuietly(files, path);
  }
}
