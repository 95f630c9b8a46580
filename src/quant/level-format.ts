import type { DecodeLevels, QuantFormat } from './format.ts';

const levels = new Int8Array(256);
const scales = new Float32Array(16);

/** A format defined by the levels of its blocks, of at most 256 values; products of a level and its scale are exact. */
export function createLevelFormat(
  format: Omit<QuantFormat, 'dequantize' | 'decodeLevels'> & { readonly decodeLevels: DecodeLevels },
): QuantFormat {
  const { blockSize, blockBytes, decodeLevels } = format;
  return {
    ...format,
    dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
      for (let block = 0; block < numBlocks; block++) {
        decodeLevels(bytes, byteOffset + block * blockBytes, levels, 0, scales, 0);
        const to = outOffset + block * blockSize;
        for (let i = 0; i < blockSize; i++) out[to + i] = scales[i >> 4]! * levels[i]!;
      }
    },
  };
}

/** Sets the scales of the two halves of 32 values. */
export function putPair(scales: Float32Array, at: number, scale: number): void {
  scales[at] = scale;
  scales[at + 1] = scale;
}
