import { halfFloats } from '../core/half.ts';
import { createLevelFormat } from './level-format.ts';
import { fitTernary, ternaryLevels } from './ternary.ts';

/**
 * 64 values: half d, then 2-bit codes, four per byte from the lowest bits up.
 * value = d * (code - 1)
 */
export const Q2_0 = createLevelFormat({
  name: 'Q2_0',
  ggufId: 42,
  blockSize: 64,
  blockBytes: 18,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    scales.fill(halfFloats()[bytes[at]! | (bytes[at + 1]! << 8)]!, scaleAt, scaleAt + 4);
    for (let i = 0; i < 64; i++) levels[to + i] = ((bytes[at + 2 + (i >> 2)]! >> ((i & 3) * 2)) & 3) - 1;
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 18) {
      fitTernary(values, valueOffset + block * 64, 64, out, at);
      out.fill(0, at + 2, at + 18);
      for (let i = 0; i < 64; i++) out[at + 2 + (i >> 2)]! |= ternaryLevels[i]! << ((i & 3) * 2);
    }
  },
});
