import { halfFloats } from '../core/half.ts';
import { legacyScale } from './legacy-fit.ts';
import type { QuantFormat } from './format.ts';
import { inverseOrZero, writeHalf } from './half-bytes.ts';
import { writeFifths, writeHalves } from './level-bits.ts';

const { fround } = Math;
const levels = new Uint8Array(32);

/**
 * 32 values: half d, 4 bytes whose bit j is the fifth bit of value j, then 16 bytes of nibbles as in Q4_0.
 * value = d * (level - 16)
 */
export const Q5_0: QuantFormat = {
  name: 'Q5_0',
  ggufId: 6,
  blockSize: 32,
  blockBytes: 22,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    for (let block = 0, at = byteOffset, to = outOffset; block < numBlocks; block++, at += 22, to += 32) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      const lowFifths = bytes[at + 2]! | (bytes[at + 3]! << 8);
      const highFifths = bytes[at + 4]! | (bytes[at + 5]! << 8);
      for (let j = 0; j < 16; j++) {
        const pair = bytes[at + 6 + j]!;
        out[to + j] = (((pair & 15) | (((lowFifths >> j) & 1) << 4)) - 16) * d;
        out[to + j + 16] = (((pair >> 4) | (((highFifths >> j) & 1) << 4)) - 16) * d;
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 32, at += 22) {
      const d = legacyScale(values, from, 16, weights);
      const inverse = fround(inverseOrZero(d));
      writeHalf(out, at, d, halves);
      for (let j = 0; j < 32; j++) levels[j] = level(values[from + j]! * inverse);
      write(levels, out, at);
    }
  },
  levelCoding: { numLevels: 32, groupSize: 32, write },
};

function write(source: Uint8Array, out: Uint8Array, at: number): void {
  writeFifths(source, out, at + 2);
  writeHalves(source, 0, out, at + 6);
}

/** A fitted scale may clip values at either end. */
function level(scaled: number): number {
  return Math.max(0, Math.min(31, Math.trunc(fround(fround(scaled) + 16.5))));
}
