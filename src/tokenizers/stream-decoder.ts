import type { StreamDecoder } from './types.ts';

const SPACE = 0x20;
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Range of the byte after a lead byte (Unicode, table 3-7); later bytes are always 80..BF. */
function secondByteRange(lead: number): [number, number] {
  if (lead === 0xe0) return [0xa0, 0xbf];
  if (lead === 0xed) return [0x80, 0x9f];
  if (lead === 0xf0) return [0x90, 0xbf];
  if (lead === 0xf4) return [0x80, 0x8f];
  return [0x80, 0xbf];
}

/** Number of bytes at the end that start a character which may still be completed. */
export function unfinishedTail(bytes: Uint8Array): number {
  for (let length = 1; length <= 3 && length <= bytes.length; length++) {
    const at = bytes.length - length;
    const lead = bytes[at]!;
    if (lead < 0x80) return 0;
    if (lead < 0xc0) continue;
    const needed = lead < 0xc2 || lead > 0xf4 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (needed <= length) return 0;
    if (length === 1) return 1;
    const [low, high] = secondByteRange(lead);
    return bytes[at + 1]! >= low && bytes[at + 1]! <= high ? length : 0;
  }
  return 0;
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array {
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}

/**
 * Decodes tokens one by one. Bytes that may still become a character are held back; invalid bytes are replaced at once,
 * exactly as in one decode of all bytes, because a replacement never depends on the bytes after it.
 */
export function createStreamDecoder(bytesOf: (id: number) => Uint8Array, stripsLeadingSpace: boolean): StreamDecoder {
  let pending = new Uint8Array(0);
  let mayStrip = stripsLeadingSpace;
  return {
    push(id) {
      let bytes = bytesOf(id);
      if (bytes.length === 0) return '';
      if (mayStrip && bytes[0] === SPACE) bytes = bytes.subarray(1);
      mayStrip = false;
      const all = pending.length === 0 ? bytes : concat(pending, bytes);
      const numHeld = unfinishedTail(all);
      pending = all.slice(all.length - numHeld);
      return decoder.decode(numHeld === 0 ? all : all.subarray(0, all.length - numHeld));
    },
    flush() {
      const text = decoder.decode(pending);
      pending = new Uint8Array(0);
      return text;
    },
  };
}
