import type { QuantFormat } from './format.ts';

/** Plain floats. Bytes are copied, so that NaN payloads survive and the source needs no alignment. */
export const F32: QuantFormat = {
  name: 'F32',
  ggufId: 0,
  blockSize: 1,
  blockBytes: 4,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const target = new Uint8Array(out.buffer, out.byteOffset + outOffset * 4, numBlocks * 4);
    target.set(bytes.subarray(byteOffset, byteOffset + numBlocks * 4));
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    out.set(new Uint8Array(values.buffer, values.byteOffset + valueOffset * 4, numBlocks * 4), outOffset);
  },
};
