import { halfFloats } from '../core/half.ts';
import { signedExtreme } from './extremes.ts';
import type { QuantFormat } from './format.ts';
import { inverseOrZero, writeHalf } from './half-bytes.ts';

const { fround } = Math;

/**
 * 32 values: half d, then 32 signed bytes.
 * value = d * byte
 */
export const Q8_0: QuantFormat = {
  name: 'Q8_0',
  ggufId: 8,
  blockSize: 32,
  blockBytes: 34,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    for (let block = 0, at = byteOffset, to = outOffset; block < numBlocks; block++, at += 34, to += 32) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      for (let j = 0; j < 32; j++) out[to + j] = ((bytes[at + 2 + j]! << 24) >> 24) * d;
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 32, at += 34) {
      const d = fround(Math.abs(signedExtreme(values, from, 32)) / 127);
      const inverse = fround(inverseOrZero(d));
      writeHalf(out, at, d, halves);
      for (let j = 0; j < 32; j++) {
        const scaled = fround(values[from + j]! * inverse);
        // Math.round rounds -2.5 to -2; here halves round away from zero.
        out[at + 2 + j] = scaled < 0 ? -Math.round(-scaled) : Math.round(scaled);
      }
    }
  },
  // -128 stays unused, as in ggml.
  levelCoding: {
    numLevels: 255,
    groupSize: 32,
    write(levels, out, at) {
      for (let j = 0; j < 32; j++) out[at + 2 + j] = levels[j]! - 127;
    },
  },
};
