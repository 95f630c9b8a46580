import { signedExtreme } from './extremes.ts';
import { FP4_VALUES, fp4Error, nearestFp4 } from './fp4.ts';
import type { QuantFormat } from './format.ts';

/** 2^(exponent - 128): half the scale, because codes are doubled. */
const scaleOf = (exponent: number): number => 2 ** (exponent - 128);

/**
 * 32 values: an 8-bit exponent, then 16 bytes; byte j holds value j in its low and value j + 16 in its high nibble.
 * value = 2^(exponent - 127) * fp4
 */
export const MXFP4: QuantFormat = {
  name: 'MXFP4',
  ggufId: 39,
  blockSize: 32,
  blockBytes: 17,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    for (let block = 0, at = byteOffset, to = outOffset; block < numBlocks; block++, at += 17, to += 32) {
      const scale = scaleOf(bytes[at]!);
      for (let j = 0; j < 16; j++) {
        const pair = bytes[at + 1 + j]!;
        out[to + j] = scale * FP4_VALUES[pair & 15]!;
        out[to + j + 16] = scale * FP4_VALUES[pair >> 4]!;
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 32, at += 17) {
      const exponent = bestExponent(values, from);
      const inverse = 1 / scaleOf(exponent);
      out[at] = exponent;
      for (let j = 0; j < 16; j++) {
        out[at + 1 + j] = nearestFp4(values[from + j]! * inverse) | (nearestFp4(values[from + j + 16]! * inverse) << 4);
      }
    }
  },
};

/** The exponent that maps the extreme value to 4 to 8, or a neighbour with a smaller error: the largest value is 6. */
function bestExponent(values: Float32Array, from: number): number {
  const extreme = Math.abs(signedExtreme(values, from, 32));
  if (!(extreme > 0)) return 0;
  const middle = Math.floor(Math.log2(extreme)) - 2 + 127;
  let best = 0;
  let bestError = Infinity;
  for (let exponent = Math.max(0, middle - 1); exponent <= Math.min(254, middle + 1); exponent++) {
    const error = fp4Error(values, from, 32, scaleOf(exponent));
    if (error < bestError) {
      bestError = error;
      best = exponent;
    }
  }
  return best;
}
