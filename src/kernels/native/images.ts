import type { Arena, Offset, WeightImages } from '../contract.ts';
import { OPCODES } from '../opcodes.ts';
import type { RecordedPackParts } from '../recorded-parts.ts';
import { LAYOUT_VERSION } from './layouts.ts';
import type { NativeAddon } from './addon.ts';

/** The largest memory page of supported systems. */
export const IMAGE_ALIGNMENT = 65536;
/** Bytes that one thread reads and checks at a time. */
const CHUNK_BYTES = 1 << 20;

interface ImageParts extends Pick<RecordedPackParts, 'record' | 'run'> {
  readonly addon: NativeAddon;
  readonly buffer: ArrayBuffer;
  readonly arena: Arena;
  /** Memory for checksums: 8 bytes per MiB. */
  readonly sumsAt: Offset;
}

const wholePages = (sizeBytes: number): number => sizeBytes - (sizeBytes % IMAGE_ALIGNMENT);

/** Saves and restores weights of the native pack; all builds use the same layout. */
export function createImages({
  addon,
  buffer,
  arena,
  sumsAt,
  record,
  run,
}: ImageParts): Omit<WeightImages, 'placeMatrix'> {
  const check = (offset: Offset, sizeBytes: number, file: number | null, fileOffset: number): BigUint64Array => {
    record(OPCODES.image, [offset, sizeBytes, sumsAt, CHUNK_BYTES, file === null ? 0 : file + 1, fileOffset]);
    run();
    const numChunks = Math.ceil(sizeBytes / CHUNK_BYTES);
    return new BigUint64Array(arena.u8(sumsAt, numChunks * 8).slice().buffer);
  };
  return {
    layout: `native ${LAYOUT_VERSION}`,
    alignment: IMAGE_ALIGNMENT,
    checksums: (offset, sizeBytes) => check(offset, sizeBytes, null, 0),
    restore(file, fileOffset, offset, sizeBytes) {
      const wholeBytes = wholePages(sizeBytes);
      if (wholeBytes > 0 && addon.mapFile(buffer, offset, wholeBytes, file, fileOffset)) {
        // Other memory follows the weights in the last page.
        check(offset + wholeBytes, sizeBytes - wholeBytes, file, fileOffset + wholeBytes);
        return check(offset, sizeBytes, null, 0);
      }
      return check(offset, sizeBytes, file, fileOffset);
    },
    clear(offset, sizeBytes) {
      const wholeBytes = wholePages(sizeBytes);
      if (wholeBytes > 0) addon.clearMemory(buffer, offset, wholeBytes);
      arena.u8(offset + wholeBytes, sizeBytes - wholeBytes).fill(0);
    },
  };
}
