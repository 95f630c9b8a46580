import type { ByteSource } from '../core/byte-source.ts';
import { invalidFile } from './failures.ts';
import { decodeUtf8 } from './utf8.ts';

/** Large enough that a 10 MB header takes 40 reads, small enough not to matter. */
const WINDOW_BYTES = 256 * 1024;

/**
 * Reads a header front to back through a window over the source. `what` names the thing being read in errors. Nothing
 * is allocated before its bytes are known to be in the file.
 */
export interface HeaderCursor {
  /** Starts every error message. */
  readonly sourceName: string;
  /** Absolute byte offset of the next read. */
  readonly offset: number;
  u8(what: string): number;
  u32(what: string): number;
  /** A u64 used as a count or size: exact below 2^53, still larger than any bound above it. */
  count(what: string): number;
  /** Throws unless `sizeBytes` (any number from the file) are left. */
  need(sizeBytes: number, what: string): void;
  /** A copy in its own buffer. */
  bytes(sizeBytes: number, what: string): Uint8Array<ArrayBuffer>;
  /** A u64 length, then that many bytes of UTF-8. */
  string(maxBytes: number, what: string): string;
}

/** `endBytes` bounds the header; the file's own end does too. */
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
  /** Index in the window of the next `sizeBytes` bytes, which are consumed. */
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
