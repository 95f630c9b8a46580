import { RuvLLMError } from '../core/errors.ts';
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
      const free = buffer.byteLength - used;
      if (alignArena(sizeBytes) > free) {
        throw new RuvLLMError('out_of_memory', `${what} needs ${sizeBytes} bytes, the arena has ${free} left`, {
          data: { neededBytes: sizeBytes, freeBytes: free },
        });
      }
      const offset = used;
      used += alignArena(sizeBytes);
      return offset;
    },
    f32: (offset, length) => new Float32Array(buffer, offset, length),
    i32: (offset, length) => new Int32Array(buffer, offset, length),
    u16: (offset, length) => new Uint16Array(buffer, offset, length),
    u8: (offset, length) => new Uint8Array(buffer, offset, length),
  };
}
