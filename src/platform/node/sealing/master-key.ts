import { randomBytes } from 'node:crypto';
import * as nodeFiles from 'node:fs';
import { resolve } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import type { OptionReader } from '../../../core/options.ts';
import { toFileError } from '../files/file-errors.ts';
import { createFileOnce, type Files } from './atomic-files.ts';
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

/** Says nothing of a value it refuses: that may well be the key in another form. */
export const masterKeyOption: OptionReader<Uint8Array> = (value, name) => {
  if (value instanceof Uint8Array && value.length === KEY_BYTES) return value;
  throw new RuvLLMError('invalid_option', `option "${name}" must be ${KEY_BYTES} bytes`, { data: { option: name } });
};
