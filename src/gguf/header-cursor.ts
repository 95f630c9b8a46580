import type { ByteSource } from '../core/byte-source.ts';
import { invalidFile } from './failures.ts';
import { decodeUtf8 } from './utf8.ts';

/** A 10 MB header takes 40 reads. */
const WINDOW_BYTES = 256 * 1024;

/**
 * Reads a header sequentially through a window over the source. `what` names the item in errors. Memory is allocated
 * only for bytes that are in the file.
 */
export interface HeaderCursor {
  /** Prefix of every error message. */
  readonly sourceName: string;
  /** Absolute byte offset of the next read. */
  readonly offset: number;
  u8(what: string): number;
  u32(what: string): number;
  /** A u64 count or size: exact below 2^53, and above it still larger than any limit. */
  count(what: string): number;
  /** Throws unless `sizeBytes` (any number from the file) remain. */
  need(sizeBytes: number, what: string): void;
  /** A copy in a new buffer. */
  bytes(sizeBytes: number, what: string): Uint8Array<ArrayBuffer>;
  /** A u64 length, then that many UTF-8 bytes. */
  string(maxBytes: number, what: string): string;
}

/** The header ends at `endBytes` or the end of the file. */
export function createHeaderCursor(source: ByteSource, endBytes: number): HeaderCursor {
  const end = Math.min(endBytes, source.sizeBytes);
  const window = new Uint8Array(Math.min(WINDOW_BYTES, source.sizeBytes));
  const windowView = new DataView(window.buffer);
  let windowStart = 0;
  let windowLength = 0;
  let position = 0;

  const need = (sizeBytes: number, what: string): void => {
    if (sizeBytes <= end - position) return;
    const bound = end < source.sizeBytes ? `the header limit is ${end} bytes` : `the file has ${end}`;
    invalidFile(`${source.name}: ${what} needs ${sizeBytes} bytes at byte ${position}, ${bound}`, {
      byteOffset: position,
      neededBytes: sizeBytes,
      availableBytes: end - position,
    });
  };
  /** Consumes the next `sizeBytes` bytes and returns their index in the window. */
  const take = (sizeBytes: number, what: string): number => {
    need(sizeBytes, what);
    if (position + sizeBytes > windowStart + windowLength) {
      windowStart = position;
      windowLength = Math.min(window.length, source.sizeBytes - position);
      source.readInto(window.subarray(0, windowLength), windowStart);
    }
    const index = position - windowStart;
    position += sizeBytes;
    return index;
  };
  const count = (what: string): number => {
    const index = take(8, what);
    return windowView.getUint32(index, true) + windowView.getUint32(index + 4, true) * 2 ** 32;
  };
  const bytes = (sizeBytes: number, what: string): Uint8Array<ArrayBuffer> => {
    need(sizeBytes, what);
    const copy = new Uint8Array(sizeBytes);
    if (sizeBytes <= window.length) {
      const index = take(sizeBytes, what);
      copy.set(window.subarray(index, index + sizeBytes));
    } else {
      source.readInto(copy, position);
      position += sizeBytes;
    }
    return copy;
  };

  return {
    sourceName: source.name,
    get offset() {
      return position;
    },
    u8: (what) => window[take(1, what)]!,
    u32: (what) => windowView.getUint32(take(4, what), true),
    count,
    need,
    bytes,
    string(maxBytes, what) {
      const start = position;
      const length = count(what);
      if (length > maxBytes) {
        invalidFile(`${source.name}: ${what} at byte ${start} is ${length} bytes long, the limit is ${maxBytes}`, {
          byteOffset: start,
        });
      }
      need(length, what);
      let text: string | null;
      if (length <= window.length) {
        const index = take(length, what);
        text = decodeUtf8(window, index, index + length);
      } else {
        text = decodeUtf8(bytes(length, what), 0, length);
      }
      if (text === null) {
        invalidFile(`${source.name}: ${what} at byte ${start} is not valid UTF-8`, { byteOffset: start });
      }
      return text;
    },
  };
}
