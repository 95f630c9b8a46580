import { halfFloats } from '../core/half.ts';
import { createLevelFormat } from './level-format.ts';
import { fitTernary, ternaryLevels } from './ternary.ts';

/**
 * 256 values: 64 bytes of 2-bit codes, then half d. Byte m of each 32 holds values m, m + 32, m + 64 and m + 96 of its 128.
 * value = d * (code - 1)
 */
export const TQ2_0 = createLevelFormat({
  name: 'TQ2_0',
  ggufId: 35,
  blockSize: 256,
  blockBytes: 66,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    scales.fill(halfFloats()[bytes[at + 64]! | (bytes[at + 65]! << 8)]!, scaleAt, scaleAt + 16);
    for (let i = 0; i < 256; i++) {
      const byte = bytes[at + (i >> 7) * 32 + (i & 31)]!;
      levels[to + i] = ((byte >> (((i >> 5) & 3) * 2)) & 3) - 1;
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 66) {
      fitTernary(values, valueOffset + block * 256, 256, out, at + 64);
      out.fill(0, at, at + 64);
      for (let i = 0; i < 256; i++) {
        out[at + (i >> 7) * 32 + (i & 31)]! |= ternaryLevels[i]! << (((i >> 5) & 3) * 2);
      }
    }
  },
});
