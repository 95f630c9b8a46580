import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { RuvLLMError } from '../../../core/errors.ts';
import { errnoOf, toFileError } from './file-errors.ts';

/** A file being written that nobody sees until `commit()`. */
export interface FileSink {
  readonly path: string;
  readonly sizeBytes: number;
  /** Appends bytes; `disk_full` or `io` when that fails (then call `abort()`). */
  write(bytes: Uint8Array): void;
  /** Flushes to the disk and puts the file in place atomically, over an older one if there is one. */
  commit(): void;
  /** Removes what was written; harmless after `commit()`. */
  abort(): void;
}

/** Flushes a folder's entries so that a rename survives power loss; not every platform can. */
export function syncFolder(path: string): void {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return; // Windows cannot open folders
  }
  try {
    fsyncSync(fd);
  } catch (error) {
    if (!['EINVAL', 'EISDIR', 'EPERM', 'EBADF', 'ENOTSUP'].includes(errnoOf(error) ?? '')) throw error;
  } finally {
    closeSync(fd);
  }
}

/** Starts a file that becomes visible at `path` only when it is complete and on the disk. */
export function createFileSink(path: string): FileSink {
  // A dot file in the same folder: rename is atomic only inside one file system.
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  let fd: number;
  try {
    fd = openSync(temporary, 'wx');
  } catch (error) {
    throw toFileError(error, 'cannot create', path);
  }
  let state: 'open' | 'committed' | 'aborted' = 'open';
  let sizeBytes = 0;
  const abort = (): void => {
    if (state !== 'open') return;
    state = 'aborted';
    closeSync(fd);
    rmSync(temporary, { force: true });
  };
  const requireOpen = (doing: string): void => {
    if (state !== 'open') throw new RuvLLMError('io', `${path}: ${doing} after it was ${state}`, { data: { path } });
  };
  return {
    path,
    get sizeBytes() {
      return sizeBytes;
    },
    write(bytes) {
      requireOpen('write');
      let done = 0;
      while (done < bytes.byteLength) {
        try {
          done += writeSync(fd, bytes, done, Math.min(bytes.byteLength - done, 1 << 30), sizeBytes + done);
        } catch (error) {
          throw toFileError(error, `cannot write ${bytes.byteLength} bytes at ${sizeBytes} of`, path);
        }
      }
      sizeBytes += done;
    },
    commit() {
      requireOpen('commit');
      try {
        fsyncSync(fd);
        renameSync(temporary, path);
        syncFolder(dirname(path));
      } catch (error) {
        abort();
        throw toFileError(error, 'cannot finish', path);
      }
      state = 'committed';
      closeSync(fd);
    },
    abort,
  };
}

/** Writes a file completely or not at all, and returns its size. */
export function writeWhole(path: string, write: (sink: FileSink) => void): number {
  const sink = createFileSink(path);
  try {
    write(sink);
    sink.commit();
  } catch (error) {
    sink.abort();
    throw error;
  }
  return sink.sizeBytes;
}
