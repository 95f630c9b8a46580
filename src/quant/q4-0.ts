import { halfFloats } from '../core/half.ts';
import { legacyScale } from './legacy-fit.ts';
import type { QuantFormat } from './format.ts';
import { inverseOrZero, writeHalf } from './half-bytes.ts';
import { writeHalves } from './level-bits.ts';

const { fround } = Math;
const levels = new Uint8Array(32);

/**
 * 32 values: half d, then 16 bytes; byte j holds value j in its low and value j + 16 in its high nibble.
 * value = d * (nibble - 8)
 */
export const Q4_0: QuantFormat = {
  name: 'Q4_0',
  ggufId: 2,
  blockSize: 32,
  blockBytes: 18,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    for (let block = 0, at = byteOffset, to = outOffset; block < numBlocks; block++, at += 18, to += 32) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      for (let j = 0; j < 16; j++) {
        const pair = bytes[at + 2 + j]!;
        out[to + j] = ((pair & 15) - 8) * d;
        out[to + j + 16] = ((pair >> 4) - 8) * d;
      }
    }
  },
  // The extreme value gets level -8, which has no positive counterpart, so that the whole range is used.
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 32, at += 18) {
      const d = legacyScale(values, from, 8, weights);
      const inverse = fround(inverseOrZero(d));
      writeHalf(out, at, d, halves);
      for (let j = 0; j < 32; j++) levels[j] = level(values[from + j]! * inverse);
      writeHalves(levels, 0, out, at + 2);
    }
  },
  levelCoding: {
    numLevels: 16,
    groupSize: 32,
    write(source, out, at) {
      writeHalves(source, 0, out, at + 2);
    },
  },
};

/** A fitted scale may clip values at either end. */
function level(scaled: number): number {
  return Math.max(0, Math.min(15, Math.trunc(fround(fround(scaled) + 8.5))));
}
