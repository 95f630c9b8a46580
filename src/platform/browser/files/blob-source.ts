import type { ByteSource } from '../../../core/byte-source.ts';
import { RuvLLMError } from '../../../core/errors.ts';
import { createSha256, toHex } from '../../../core/sha256.ts';
import { createSyncFileReader } from '../worker-scope.ts';
import { toStorageError } from './storage-errors.ts';

/** Bytes of one read while hashing or loading: larger ones would double in memory. */
const READ_BYTES = 8 << 20;
/** Bytes around a missing range that the page reads at once; most headers fit into a few of these. */
const FETCH_BYTES = 4 << 20;

function checkRange(name: string, sizeBytes: number, offset: number, length: number): void {
  if (Number.isSafeInteger(offset) && offset >= 0 && offset + length <= sizeBytes) return;
  throw new RuvLLMError('io', `${name}: read of ${length} bytes at ${offset}, file has ${sizeBytes}`, {
    data: { name, offset, length, sizeBytes },
  });
}

/** Synchronous access to a blob, in a worker. */
export function createBlobSource(blob: Blob, name: string): ByteSource {
  const reader = createSyncFileReader();
  return {
    name,
    sizeBytes: blob.size,
    readInto(target, offset) {
      checkRange(name, blob.size, offset, target.byteLength);
      for (let done = 0; done < target.byteLength; done += READ_BYTES) {
        const end = Math.min(target.byteLength, done + READ_BYTES);
        try {
          target.set(new Uint8Array(reader.readAsArrayBuffer(blob.slice(offset + done, offset + end))), done);
        } catch (error) {
          throw toStorageError(error, `reading ${end - done} bytes at ${offset + done} of ${name}`);
        }
      }
    },
    close() {},
  };
}

/** Thrown by a source that has not fetched these bytes yet. */
class MissingBytes extends Error {
  readonly offset: number;
  readonly length: number;

  constructor(offset: number, length: number) {
    super('bytes are not fetched yet');
    this.offset = offset;
    this.length = length;
  }
}

/**
 * Runs a synchronous reader on a blob in the page, where blobs can be read only asynchronously: whenever it needs bytes that
 * are missing, they are fetched and it starts again.
 */
export async function readBlob<T>(blob: Blob, name: string, read: (source: ByteSource) => T): Promise<T> {
  const parts: { readonly offset: number; readonly bytes: Uint8Array }[] = [];
  const source: ByteSource = {
    name,
    sizeBytes: blob.size,
    readInto(target, offset) {
      const length = target.byteLength;
      checkRange(name, blob.size, offset, length);
      const part = parts.find(({ offset: start, bytes }) => start <= offset && offset + length <= start + bytes.length);
      if (part === undefined) throw new MissingBytes(offset, length);
      target.set(part.bytes.subarray(offset - part.offset, offset - part.offset + length));
    },
    close() {},
  };
  for (;;) {
    try {
      return read(source);
    } catch (error) {
      if (!(error instanceof MissingBytes)) throw error;
      const end = Math.min(blob.size, error.offset + Math.max(error.length, FETCH_BYTES));
      try {
        parts.push({
          offset: error.offset,
          bytes: new Uint8Array(await blob.slice(error.offset, end).arrayBuffer()),
        });
      } catch (cause) {
        throw toStorageError(cause, `reading ${name}`);
      }
    }
  }
}

/** SHA-256 of a blob, in hex; in a worker. */
export function hashBlob(blob: Blob, name: string): string {
  const source = createBlobSource(blob, name);
  const hash = createSha256();
  const buffer = new Uint8Array(Math.min(READ_BYTES, blob.size));
  for (let at = 0; at < blob.size; at += buffer.length) {
    const part = buffer.subarray(0, Math.min(buffer.length, blob.size - at));
    source.readInto(part, at);
    hash.update(part);
  }
  return toHex(hash.digest());
}
