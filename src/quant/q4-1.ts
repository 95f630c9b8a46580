import { halfFloats } from '../core/half.ts';
import { legacyRange } from './legacy-fit.ts';
import type { QuantFormat } from './format.ts';
import { inverseOrZero, writeHalf } from './half-bytes.ts';
import { writeHalves } from './level-bits.ts';

const { fround } = Math;
const levels = new Uint8Array(32);

/**
 * 32 values: half d, half m, then 16 bytes; byte j holds value j in its low and value j + 16 in its high nibble.
 * value = d * nibble + m
 */
export const Q4_1: QuantFormat = {
  name: 'Q4_1',
  ggufId: 3,
  blockSize: 32,
  blockBytes: 20,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    for (let block = 0, at = byteOffset, to = outOffset; block < numBlocks; block++, at += 20, to += 32) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      const m = halves[bytes[at + 2]! | (bytes[at + 3]! << 8)]!;
      for (let j = 0; j < 16; j++) {
        const pair = bytes[at + 4 + j]!;
        out[to + j] = (pair & 15) * d + m;
        out[to + j + 16] = (pair >> 4) * d + m;
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 32, at += 20) {
      const { d, min } = legacyRange(values, from, 15, weights);
      const inverse = fround(inverseOrZero(d));
      writeHalf(out, at, d, halves);
      writeHalf(out, at + 2, min, halves);
      for (let j = 0; j < 32; j++) levels[j] = level(fround(values[from + j]! - min) * inverse);
      writeHalves(levels, 0, out, at + 4);
    }
  },
  levelCoding: {
    numLevels: 16,
    groupSize: 32,
    write(source, out, at) {
      writeHalves(source, 0, out, at + 4);
    },
  },
};

/** A fitted scale may clip values at either end. */
function level(scaled: number): number {
  return Math.max(0, Math.min(15, Math.trunc(fround(fround(scaled) + 0.5))));
}
