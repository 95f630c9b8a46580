import { takeRoom } from './arena-alignment.ts';
import { type Arena, alignArena } from './contract.ts';

/** A bump allocator over one buffer; `start` is the end of the pack's scratch. */
export function createArena(buffer: ArrayBufferLike, start = 0): Arena {
  let used = alignArena(start);
  return {
    sizeBytes: buffer.byteLength,
    get usedBytes() {
      return used;
    },
    allocate(sizeBytes, what) {
      const taken = takeRoom(sizeBytes, buffer.byteLength - used, what);
      const offset = used;
      used += taken;
      return offset;
    },
    f32: (offset, length) => new Float32Array(buffer, offset, length),
    i32: (offset, length) => new Int32Array(buffer, offset, length),
    u16: (offset, length) => new Uint16Array(buffer, offset, length),
    u8: (offset, length) => new Uint8Array(buffer, offset, length),
  };
}
