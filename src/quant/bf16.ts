import { floatToBfloat } from '../core/half.ts';
import type { QuantFormat } from './format.ts';

/** The upper half of a float. */
export const BF16: QuantFormat = {
  name: 'BF16',
  ggufId: 30,
  blockSize: 1,
  blockBytes: 2,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const bits = new Uint32Array(out.buffer, out.byteOffset + outOffset * 4, numBlocks);
    for (let i = 0, at = byteOffset; i < numBlocks; i++, at += 2) {
      bits[i] = (bytes[at]! << 16) | (bytes[at + 1]! << 24);
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let i = 0, at = outOffset; i < numBlocks; i++, at += 2) {
      const bits = floatToBfloat(values[valueOffset + i]!);
      out[at] = bits;
      out[at + 1] = bits >> 8;
    }
  },
};
