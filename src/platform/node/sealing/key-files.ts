import { createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { errnoOf, toFileError } from '../files/file-errors.ts';
import { createFileOnce, flushFolder, listNames, readWhole, replaceFile, type Files } from './atomic-files.ts';
import { openFile, OVERHEAD_BYTES, sealFile } from './sealed-file.ts';
import { deriveKey, frame, KEY_BYTES } from './sealing.ts';

const SALT = Buffer.from('ruvllm sealed store 1');
/** Opened keys that are remembered: opening one again costs microseconds, remembering all of them grows for ever. */
const MAX_OPENED = 1024;
const KEY_FILE_BYTES = KEY_BYTES + OVERHEAD_BYTES;
const KEY_FILE = /^([0-9a-f]{32})\.key$/;

/** What the keys of a tenant are for. */
export interface TenantKeys {
  readonly sealing: KeyObject;
  readonly naming: KeyObject;
}

/** Keys of tenants by their ids, each in a file of its own. */
export interface KeyFiles {
  find(id: string): TenantKeys | null;
  obtain(id: string): TenantKeys;
  erase(id: string): void;
  /** Seals every key that another wrapping key sealed anew with the first; the number of them. */
  rewrap(wrapping: readonly KeyObject[]): number;
}

/** The first of `wrapping` seals, each of them opens. */
export function openKeyFiles(files: Files, folder: string, wrapping: readonly KeyObject[]): KeyFiles {
  const keyFolder = join(folder, 'keys');
  const opened = new Map<string, { wrapped: Uint8Array; keys: TenantKeys }>();
  let wrappingKeys = wrapping;

  const pathOf = (id: string): string => join(keyFolder, `${id}.key`);

  // Read each time, which takes microseconds: another process may have erased the tenant since.
  function find(id: string): TenantKeys | null {
    const wrapped = readKeyFile(id);
    if (wrapped === 'absent') return null;
    const known = opened.get(id);
    if (known !== undefined && wrapped !== null && Buffer.compare(known.wrapped, wrapped) === 0) return known.keys;
    const { secret } = unwrap(id, wrapped);
    const keys = { sealing: derive(secret, 'seal'), naming: derive(secret, 'name') };
    secret.fill(0);
    for (const oldest of opened.keys()) {
      if (opened.size < MAX_OPENED) break;
      opened.delete(oldest);
    }
    opened.set(id, { wrapped: wrapped!, keys });
    return keys;
  }

  function unwrap(id: string, wrapped: Uint8Array | null): { secret: Uint8Array; isCurrent: boolean } {
    for (const key of wrapped === null ? [] : wrappingKeys) {
      const secret = openFile({ kind: 'key', key, name: id }, wrapped!)?.bytes;
      if (secret?.length === KEY_BYTES) return { secret, isCurrent: key === wrappingKeys[0] };
    }
    throw new RuvLLMError('io', `the key file ${pathOf(id)} cannot be decrypted with this master key`, {
      data: { path: pathOf(id), expectedBytes: KEY_FILE_BYTES, isDamaged: true },
    });
  }

  function readKeyFile(id: string): Uint8Array | null | 'absent' {
    try {
      return readWhole(files, pathOf(id), KEY_FILE_BYTES);
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return 'absent';
      throw toFileError(error, 'reading the key file', pathOf(id));
    }
  }

  const wrap = (id: string, secret: Uint8Array): Uint8Array =>
    Buffer.concat(sealFile({ kind: 'key', key: wrappingKeys[0]!, name: id }, 0, secret));

  function create(id: string): void {
    const secret = randomBytes(KEY_BYTES);
    try {
      createFileOnce(files, pathOf(id), wrap(id, secret));
    } catch (error) {
      throw toFileError(error, 'writing the key file', pathOf(id));
    } finally {
      secret.fill(0);
    }
  }

  return {
    find,
    obtain(id) {
      const known = find(id);
      if (known !== null) return known;
      create(id);
      const made = find(id); // somebody else's, when that one was first
      if (made === null) {
        throw new RuvLLMError('io', `the key file ${pathOf(id)} no longer exists`, { data: { path: pathOf(id) } });
      }
      return made;
    },
    erase(id) {
      opened.delete(id);
      try {
        files.rmSync(pathOf(id), { force: true });
        if (files.existsSync(keyFolder)) flushFolder(files, keyFolder);
      } catch (error) {
        throw toFileError(error, 'erasing the key file', pathOf(id));
      }
    },
    rewrap(next) {
      wrappingKeys = next;
      let count = 0;
      for (const name of listNames(files, keyFolder)) {
        const id = KEY_FILE.exec(name)?.[1];
        const wrapped = id === undefined ? 'absent' : readKeyFile(id);
        if (id === undefined || wrapped === 'absent') continue;
        const { secret, isCurrent } = unwrap(id, wrapped);
        try {
          if (isCurrent) continue;
          replaceFile(files, pathOf(id), [wrap(id, secret)], true);
          count++;
        } catch (error) {
          throw toFileError(error, 'writing the key file', pathOf(id));
        } finally {
          secret.fill(0);
        }
      }
      return count;
    },
  };
}

function derive(secret: Uint8Array, purpose: string): KeyObject {
  return createSecretKey(deriveKey(secret, SALT, frame(purpose)));
}
