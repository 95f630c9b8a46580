import { halfFloats } from '../core/half.ts';
import { writeHalf } from './half-bytes.ts';
import { createLevelFormat } from './level-format.ts';

/**
 * 128 values: half d, then a bit per value.
 * value = bit ? d : -d
 */
export const Q1_0 = createLevelFormat({
  name: 'Q1_0',
  ggufId: 41,
  blockSize: 128,
  blockBytes: 18,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    scales.fill(halfFloats()[bytes[at]! | (bytes[at + 1]! << 8)]!, scaleAt, scaleAt + 8);
    for (let i = 0; i < 128; i++) levels[to + i] = (bytes[at + 2 + (i >> 3)]! >> (i & 7)) & 1 ? 1 : -1;
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 128, at += 18) {
      let sum = 0;
      for (let i = from; i < from + 128; i++) sum = Math.fround(sum + Math.abs(values[i]!));
      writeHalf(out, at, sum / 128, halfFloats());
      out.fill(0, at + 2, at + 18);
      for (let i = 0; i < 128; i++) if (values[from + i]! >= 0) out[at + 2 + (i >> 3)]! |= 1 << (i & 7);
    }
  },
});
