import { halfFloats } from '../core/half.ts';
import { fitSymmetricSuperBlock } from './fit-super-block.ts';
import type { QuantFormat } from './format.ts';

const LAYOUT = { subBlock: 16, halfLevels: 32, halfScales: 128, dOffset: 208 };
const scales = new Int8Array(16);
const levels = new Uint8Array(256);

/**
 * 256 values in 16 sub-blocks: 128 bytes of lower nibbles, 64 bytes of upper bits, 16 signed scales, half d.
 * Each 128 values have 64 nibble bytes (l: values l and l + 64; l + 32: values l + 32 and l + 96) and 32 upper
 * bytes (l: two bits each of values l, l + 32, l + 64, l + 96).
 * value = d * scale * (level - 32)
 */
export const Q6_K: QuantFormat = {
  name: 'Q6_K',
  ggufId: 14,
  blockSize: 256,
  blockBytes: 210,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    let to = outOffset;
    for (let block = 0, at = byteOffset; block < numBlocks; block++, at += 210) {
      const d = halves[bytes[at + 208]! | (bytes[at + 209]! << 8)]!;
      // Sixteen values of four sub-blocks at a time, because they share bytes.
      for (let group = 0; group < 4; group++) {
        const half = group >> 1;
        const side = (group & 1) * 16;
        const scalesAt = at + 192 + half * 8 + (group & 1);
        const scale0 = d * ((bytes[scalesAt]! << 24) >> 24);
        const scale1 = d * ((bytes[scalesAt + 2]! << 24) >> 24);
        const scale2 = d * ((bytes[scalesAt + 4]! << 24) >> 24);
        const scale3 = d * ((bytes[scalesAt + 6]! << 24) >> 24);
        const lowAt = at + half * 64 + side;
        const highAt = at + 128 + half * 32 + side;
        const target = to + half * 128 + side;
        for (let l = 0; l < 16; l++) {
          const low = bytes[lowAt + l]!;
          const next = bytes[lowAt + 32 + l]!;
          const high = bytes[highAt + l]!;
          out[target + l] = scale0 * (((low & 15) | ((high & 3) << 4)) - 32);
          out[target + 32 + l] = scale1 * (((next & 15) | ((high & 12) << 2)) - 32);
          out[target + 64 + l] = scale2 * (((low >> 4) | (high & 48)) - 32);
          out[target + 96 + l] = scale3 * (((next >> 4) | ((high & 192) >> 2)) - 32);
        }
      }
      to += 256;
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 256, at += 210) {
      fitSymmetricSuperBlock(LAYOUT, values, from, out, at, halves, scales, levels, weights);
      for (let sub = 0; sub < 16; sub++) out[at + 192 + sub] = scales[sub]!;
      write(levels, out, at);
    }
  },
  levelCoding: { numLevels: 64, groupSize: 16, write },
};

function write(source: Uint8Array, out: Uint8Array, at: number): void {
  out.fill(0, at, at + 192);
  for (let i = 0; i < 256; i++) {
    const level = source[i]!;
    out[at + (i >> 7) * 64 + (i & 63)]! |= (level & 15) << (((i >> 6) & 1) * 4);
    out[at + 128 + (i >> 7) * 32 + (i & 31)]! |= (level >> 4) << (((i >> 5) & 3) * 2);
  }
}
