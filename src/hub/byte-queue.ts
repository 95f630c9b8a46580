/** Reads a stream in pieces of the requested size, holding one chunk at a time. */
export interface ByteQueue {
  /** Bytes consumed so far. */
  readonly position: number;
  /** Exactly `length` bytes (a small header), or null if the stream ends first. */
  take(length: number): Promise<Uint8Array | null>;
  /** Skips bytes; returns the number of missing ones. */
  skip(length: number): Promise<number>;
  /** The bytes up to absolute position `end`, as they arrive; ends early if the stream does. */
  read(end: number): AsyncGenerator<Uint8Array>;
  /** Releases the source. */
  close(): Promise<void>;
}

export function createByteQueue(chunks: AsyncIterable<Uint8Array>): ByteQueue {
  const iterator = chunks[Symbol.asyncIterator]();
  let current = new Uint8Array(0);
  let position = 0;

  /** Up to `max` bytes, at least one, or null at the end. */
  const next = async (max: number): Promise<Uint8Array | null> => {
    while (current.byteLength === 0) {
      const { done, value } = await iterator.next();
      if (done === true) return null;
      current = value as Uint8Array<ArrayBuffer>;
    }
    const piece = current.subarray(0, max);
    current = current.subarray(piece.byteLength);
    position += piece.byteLength;
    return piece;
  };

  return {
    get position() {
      return position;
    },
    async take(length) {
      const result = new Uint8Array(length);
      for (let done = 0; done < length;) {
        const piece = await next(length - done);
        if (piece === null) return null;
        result.set(piece, done);
        done += piece.byteLength;
      }
      return result;
    },
    async skip(length) {
      for (let left = length; left > 0;) {
        const piece = await next(left);
        if (piece === null) return left;
        left -= piece.byteLength;
      }
      return 0;
    },
    async *read(end) {
      for (let left = end - position; left > 0; left = end - position) {
        const piece = await next(left);
        if (piece === null) return;
        yield piece;
      }
    },
    async close() {
      await iterator.return?.();
    },
  };
}
