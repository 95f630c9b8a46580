/** Bytes that arrive in pieces. A list of the pieces would take many times as much as their bytes if they are small. */
export interface ByteBuffer {
  readonly length: number;
  append(bytes: Uint8Array): void;
  /** All bytes since the last call; the buffer is empty afterwards and keeps no memory. */
  take(): Uint8Array;
}

const FIRST_BYTES = 1024;
const EMPTY = new Uint8Array(0);

export function createByteBuffer(): ByteBuffer {
  let bytes = EMPTY;
  let length = 0;
  return {
    get length() {
      return length;
    },
    append(piece) {
      const needed = length + piece.length;
      if (needed > bytes.length) {
        const larger = new Uint8Array(Math.max(needed, 2 * bytes.length, FIRST_BYTES));
        larger.set(bytes.subarray(0, length));
        bytes = larger;
      }
      bytes.set(piece, length);
      length = needed;
    },
    take() {
      const taken = bytes.subarray(0, length);
      [bytes, length] = [EMPTY, 0];
      return taken;
    },
  };
}
