import { randomBytes } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { dirname, resolve } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import type { OptionReader } from '../../../core/options.ts';
import { errnoOf, toFileError } from '../files/file-errors.ts';
import { createFileOnce, flushFolder, type Files } from './atomic-files.ts';
import { KEY_BYTES } from './sealing.ts';

/**
 * The key that wraps all others: 32 bytes in a file that only its owner may read, made when there is none. Who starts at the
 * same time gets the same key. A file of another length is refused, not replaced: whatever it is, somebody wants it.
 */
export function readOrCreateMasterKey(path: string, files: Files = nodeFiles): Uint8Array {
  const absolute = resolve(path);
  try {
    let stat = files.statSync(absolute, { throwIfNoEntry: false });
    if (stat === undefined) {
      createFileOnce(files, absolute, randomBytes(KEY_BYTES));
      stat = files.statSync(absolute);
    }
    if (stat.isFile() && stat.size === KEY_BYTES) {
      const key = files.readFileSync(absolute);
      if (key.length === KEY_BYTES) return key;
    }
    const what = stat.isFile() ? `has ${stat.size} bytes` : 'is not a file';
    throw new RuvLLMError('invalid_option', `the master key ${absolute} ${what}; ${KEY_BYTES} are required`, {
      data: { path: absolute, sizeBytes: stat.size, expectedBytes: KEY_BYTES },
    });
  } catch (error) {
    throw toFileError(error, 'reading the master key', absolute);
  }
}

/** A process that is just making the file needs far less. Only file systems without hard links show a file before it is whole. */
const SETTLE_MS = 100;

/**
 * Renames a key file of another size, so that a server can start; the next read makes a new key. The damaged file may still help
 * to recover data, so it is neither deleted nor overwritten. Returns a message for the operator; null: there is no such file.
 */
export function setAsideDamagedMasterKey(path: string, files: Files = nodeFiles, now = Date.now): string | null {
  const absolute = resolve(path);
  const damagedSize = (): number | null => {
    const stat = files.statSync(absolute, { throwIfNoEntry: false });
    return stat === undefined || !stat.isFile() || stat.size === KEY_BYTES ? null : stat.size;
  };
  const aside = `${absolute}.damaged-${now()}`;
  let damage = `the master key ${absolute} is damaged`;
  try {
    if (damagedSize() === null) return null;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, SETTLE_MS);
    const sizeBytes = damagedSize();
    if (sizeBytes === null) return null;
    damage = `the master key ${absolute} has ${sizeBytes} bytes; ${KEY_BYTES} are required`;
    files.renameSync(absolute, aside);
    if (restoreWhole(files, aside, absolute)) return null;
    flushFolder(files, dirname(absolute));
    return `${damage}: moved to ${aside}. Data encrypted with it cannot be read until the key is put back`;
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return null; // another process was faster
    return `${damage} and cannot be moved aside: ${toFileError(error, 'renaming', absolute).message}`;
  }
}

/** Puts back a whole key: another process replaced the damaged file between our look and our rename. */
function restoreWhole(files: Files, aside: string, path: string): boolean {
  if (files.statSync(aside).size !== KEY_BYTES) return false;
  files.linkSync(aside, path); // unlike a rename, it never overwrites
  files.unlinkSync(aside);
  return true;
}

/** Says nothing of a value it refuses: that may well be the key in another form. */
export const masterKeyOption: OptionReader<Uint8Array> = (value, name) => {
  if (value instanceof Uint8Array && value.length === KEY_BYTES) return value;
  throw new RuvLLMError('invalid_option', `option "${name}" must be ${KEY_BYTES} bytes`, { data: { option: name } });
};
