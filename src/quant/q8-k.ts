import { roundToEven } from '../core/rounding.ts';
import { signedExtreme } from './extremes.ts';
import { createLevelFormat } from './level-format.ts';

const word = new DataView(new ArrayBuffer(4));

/**
 * 256 values: float d, 256 signed bytes, then the sums of each 16 of them as 16-bit integers.
 * value = d * byte
 */
export const Q8_K = createLevelFormat({
  name: 'Q8_K',
  ggufId: 15,
  blockSize: 256,
  blockBytes: 292,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    for (let i = 0; i < 4; i++) word.setUint8(i, bytes[at + i]!);
    scales.fill(word.getFloat32(0, true), scaleAt, scaleAt + 16);
    for (let i = 0; i < 256; i++) levels[to + i] = bytes[at + 4 + i]!;
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 256, at += 292) {
      const extreme = signedExtreme(values, from, 256);
      const inverse = extreme === 0 ? 0 : Math.fround(-127 / extreme);
      word.setFloat32(0, extreme === 0 ? 0 : 1 / inverse, true);
      for (let i = 0; i < 4; i++) out[at + i] = word.getUint8(i);
      for (let sub = 0; sub < 16; sub++) {
        let sum = 0;
        for (let i = sub * 16; i < sub * 16 + 16; i++) {
          const level = Math.min(127, roundToEven(Math.fround(inverse * values[from + i]!)));
          out[at + 4 + i] = level;
          sum += level;
        }
        out[at + 260 + 2 * sub] = sum;
        out[at + 261 + 2 * sub] = sum >> 8;
      }
    }
  },
});
