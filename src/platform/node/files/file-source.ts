import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import type { ByteSource } from '../../../core/byte-source.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { toFileError } from './file-errors.ts';
import { requireRegularFile } from './regular-file.ts';

/** One read() moves at most 2 GiB - 4 KiB on Linux, and Node refuses lengths of 2 GiB and more. */
const MAX_READ_BYTES = 1 << 30;

/** Opens a file for random access; `not_found` or `io` when that fails. */
export function openFileSource(path: string): ByteSource {
  let fd: number;
  let sizeBytes: number;
  requireRegularFile(path);
  try {
    // Without O_NONBLOCK (Windows has none) a pipe would block the thread until somebody writes to it.
    fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    throw toFileError(error, 'cannot open', path);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new RuvLLMError('io', `cannot open ${path}: not a regular file`, { data: { path } });
    sizeBytes = stat.size;
  } catch (error) {
    closeSync(fd);
    throw toFileError(error, 'cannot open', path);
  }
  let isOpen = true;
  return {
    name: path,
    sizeBytes,
    readInto(target, offset) {
      if (!isOpen) throw new RuvLLMError('io', `${path}: read after close`, { data: { path } });
      const length = target.byteLength;
      if (!Number.isSafeInteger(offset) || offset < 0 || offset + length > sizeBytes) {
        throw new RuvLLMError('io', `${path}: read of ${length} bytes at ${offset}, file has ${sizeBytes}`, {
          data: { path, offset, length, sizeBytes },
        });
      }
      let done = 0;
      while (done < length) {
        let count: number;
        try {
          count = readSync(fd, target, done, Math.min(length - done, MAX_READ_BYTES), offset + done);
        } catch (error) {
          throw toFileError(error, `cannot read ${length} bytes at ${offset} of`, path);
        }
        if (count === 0) {
          const now = fstatSync(fd).size;
          throw new RuvLLMError(
            'io',
            `${path}: ends at byte ${offset + done}, wanted bytes ${offset} to ${offset + length}; ` +
              `it had ${sizeBytes} bytes when opened and has ${now} now`,
            { data: { path, offset, length, sizeBytes, sizeNowBytes: now } },
          );
        }
        done += count;
      }
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      closeSync(fd);
    },
  };
}
