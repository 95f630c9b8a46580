import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { errnoOf, toFileError } from '../file-errors.ts';
import { createFileOnce, flushFolder, readWhole, type Files } from './atomic-files.ts';
import { openFile, OVERHEAD_BYTES, sealFile } from './sealed-file.ts';
import { deriveKey, frame, KEY_BYTES, keyedName } from './sealing.ts';

/** Hex digits of the names of tenants and models: 128 bits. */
export const ID_LENGTH = 32;

const SALT = Buffer.from('ruvllm sealed store 1');
/** Opened keys that are remembered: opening one again costs microseconds, remembering all of them grows for ever. */
const MAX_OPENED = 1024;
const KEY_FILE_BYTES = KEY_BYTES + OVERHEAD_BYTES;

/** A key for one purpose, from a secret that is never used itself. */
function derive(secret: Uint8Array, purpose: string): KeyObject {
  return createSecretKey(deriveKey(secret, SALT, frame(purpose)));
}

/** What the keys of a tenant are for. */
export interface TenantKeys {
  readonly sealing: KeyObject;
  readonly naming: KeyObject;
}

/** One random key for each tenant, wrapped by the master key; to delete it is to erase all that was sealed with it. */
export interface KeyRing {
  /** Stands for the tenant in paths. */
  idOf(tenant: string): string;
  /** Stands for anything else that shall not be seen in paths, the same for all tenants. */
  nameOf(...texts: readonly string[]): string;
  /** Shows that two have the same master key and says nothing about it. */
  readonly checkValue: string;
  /** The keys as they are on the disk now, made when there are none. Throws `io` when there is one that does not open. */
  keysOf(tenant: string): TenantKeys;
  /** The same, or null when there are none. */
  findKeys(tenant: string): TenantKeys | null;
  /** Returns once the key is gone from the disk. */
  erase(tenant: string): void;
}

/** The keys of the tenants in `<folder>/keys`; needs no folder before the first key is made. */
export function openKeyRing(files: Files, folder: string, masterKey: Uint8Array): KeyRing {
  const keyFolder = join(folder, 'keys');
  const wrapping = derive(masterKey, 'wrap keys of tenants');
  const naming = derive(masterKey, 'name tenants and models');
  const checkValue = keyedName(derive(masterKey, 'recognise the master key'), frame('check'));
  const opened = new Map<string, { wrapped: Uint8Array; keys: TenantKeys }>();

  const nameOf = (...texts: readonly string[]): string => keyedName(naming, frame(...texts)).slice(0, ID_LENGTH);
  const idOf = (tenant: string): string => nameOf('tenant', tenant);
  const pathOf = (id: string): string => join(keyFolder, `${id}.key`);

  // Read each time, which takes microseconds: another process may have erased the tenant since.
  function find(id: string): TenantKeys | null {
    const wrapped = readKeyFile(id);
    if (wrapped === 'absent') return null;
    const known = opened.get(id);
    if (known !== undefined && wrapped !== null && Buffer.compare(known.wrapped, wrapped) === 0) return known.keys;
    const secret = wrapped && openFile({ kind: 'key', key: wrapping, name: id }, wrapped)?.bytes;
    if (wrapped === null || secret?.length !== KEY_BYTES) {
      throw new RuvLLMError('io', `the key file ${pathOf(id)} does not open with this master key`, {
        data: { path: pathOf(id), expectedBytes: KEY_FILE_BYTES },
      });
    }
    const keys = { sealing: derive(secret, 'seal'), naming: derive(secret, 'name') };
    secret.fill(0);
    for (const oldest of opened.keys()) {
      if (opened.size < MAX_OPENED) break;
      opened.delete(oldest);
    }
    opened.set(id, { wrapped, keys });
    return keys;
  }

  function readKeyFile(id: string): Uint8Array | null | 'absent' {
    try {
      return readWhole(files, pathOf(id), KEY_FILE_BYTES);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return 'absent';
      throw toFileError(error, 'reading the key file', pathOf(id));
    }
  }

  function create(id: string): void {
    const secret = randomBytes(KEY_BYTES);
    try {
      createFileOnce(files, pathOf(id), Buffer.concat(sealFile({ kind: 'key', key: wrapping, name: id }, 0, secret)));
    } catch (error) {
      throw toFileError(error, 'writing the key file', pathOf(id));
    } finally {
      secret.fill(0);
    }
  }

  return {
    idOf,
    nameOf,
    checkValue,
    findKeys: (tenant) => find(idOf(tenant)),
    keysOf(tenant) {
      const id = idOf(tenant);
      const known = find(id);
      if (known !== null) return known;
      create(id);
      const made = find(id); // somebody else's, when that one was first
      if (made === null)
        throw new RuvLLMError('io', `the key file ${pathOf(id)} vanished`, { data: { path: pathOf(id) } });
      return made;
    },
    erase(tenant) {
      const id = idOf(tenant);
      opened.delete(id);
      try {
        files.rmSync(pathOf(id), { force: true });
        if (files.existsSync(keyFolder)) flushFolder(files, keyFolder);
      } catch (error) {
        throw toFileError(error, 'erasing the key file', pathOf(id));
      }
    },
  };
}
