import { floatToHalf, halfFloats } from '../core/half.ts';
import type { QuantFormat } from './format.ts';

/** IEEE binary16. */
export const F16: QuantFormat = {
  name: 'F16',
  ggufId: 1,
  blockSize: 1,
  blockBytes: 2,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    for (let i = 0, at = byteOffset; i < numBlocks; i++, at += 2) {
      out[outOffset + i] = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let i = 0, at = outOffset; i < numBlocks; i++, at += 2) {
      const half = floatToHalf(values[valueOffset + i]!);
      out[at] = half;
      out[at + 1] = half >> 8;
    }
  },
};
