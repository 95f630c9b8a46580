import { createByteBuffer } from '../core/byte-buffer.ts';
import { MCP_LIMITS } from './limits.ts';

const NEWLINE = 0x0a;

/** Splits a stream into lines, of which it holds at most one. */
export interface LineSplitter {
  /** The lines that end in a chunk, without empty ones. Null: a line beyond the limit, whose bytes are dropped as soon as it is. */
  push(chunk: Uint8Array): Generator<Uint8Array | null, void, undefined>;
  /** The line that has no end. */
  end(): Generator<Uint8Array | null, void, undefined>;
}

const isBlank = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09);

export function createLineSplitter(maxBytes: number = MCP_LIMITS.maxMessageBytes): LineSplitter {
  const buffer = createByteBuffer();
  let isDropped = false;

  /** Null: the line has just gone beyond the limit. */
  function add(piece: Uint8Array): null | undefined {
    if (isDropped) return undefined;
    if (buffer.length + piece.length > maxBytes) {
      buffer.take();
      isDropped = true;
      return null;
    }
    buffer.append(piece);
    return undefined;
  }

  function* end(): Generator<Uint8Array | null, void, undefined> {
    const line = buffer.take();
    if (!isDropped && !isBlank(line)) yield line;
    isDropped = false;
  }

  return {
    *push(chunk) {
      let start = 0;
      for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, start)) {
        if (add(chunk.subarray(start, at)) === null) yield null;
        yield* end();
        start = at + 1;
      }
      if (add(chunk.subarray(start)) === null) yield null;
    },
    end,
  };
}
