import { halfFloats } from '../core/half.ts';
import { fitSymmetricSuperBlock } from './fit-super-block.ts';
import type { QuantFormat } from './format.ts';
import { writePairs } from './level-bits.ts';

const LAYOUT = { subBlock: 16, halfLevels: 4, halfScales: 32, dOffset: 108 };
const scales = new Int8Array(16);
const levels = new Uint8Array(256);

/**
 * 256 values in 16 sub-blocks: 32 bytes of third bits, 64 bytes of lower level bits, 12 bytes of 6-bit scales, half d.
 *   third bits: bit b of byte l belongs to value 32 * b + l
 *   lower bits: as in Q2_K
 *   scales: lower four bits of scale s in the low (s < 8) or high nibble of byte s % 8, upper two bits in byte
 *     8 + s % 4 at bit 2 * (s / 4)
 * value = d * (scale - 32) * (level - 4)
 */
export const Q3_K: QuantFormat = {
  name: 'Q3_K',
  ggufId: 11,
  blockSize: 256,
  blockBytes: 110,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    let to = outOffset;
    for (let block = 0, at = byteOffset; block < numBlocks; block++, at += 110) {
      const d = halves[bytes[at + 108]! | (bytes[at + 109]! << 8)]!;
      for (let sub = 0; sub < 16; sub++, to += 16) {
        const lower = (bytes[at + 96 + (sub & 7)]! >> ((sub >> 3) * 4)) & 15;
        const upper = (bytes[at + 104 + (sub & 3)]! >> ((sub >> 2) * 2)) & 3;
        const scale = d * ((lower | (upper << 4)) - 32);
        const thirdsAt = at + (sub & 1) * 16;
        const thirdShift = sub >> 1;
        const levelsAt = at + 32 + (sub >> 3) * 32 + (sub & 1) * 16;
        const shift = sub & 6;
        for (let l = 0; l < 16; l++) {
          const third = (bytes[thirdsAt + l]! >> thirdShift) & 1;
          out[to + l] = scale * (((bytes[levelsAt + l]! >> shift) & 3) + third * 4 - 4);
        }
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 256, at += 110) {
      out.fill(0, at + 96, at + 108);
      fitSymmetricSuperBlock(LAYOUT, values, from, out, at, halves, scales, levels, weights);
      for (let sub = 0; sub < 16; sub++) {
        const stored = scales[sub]! + 32;
        out[at + 96 + (sub & 7)]! |= (stored & 15) << ((sub >> 3) * 4);
        out[at + 104 + (sub & 3)]! |= (stored >> 4) << ((sub >> 2) * 2);
      }
      write(levels, out, at);
    }
  },
  levelCoding: { numLevels: 8, groupSize: 16, write },
};

function write(source: Uint8Array, out: Uint8Array, at: number): void {
  out.fill(0, at, at + 32);
  for (let i = 0; i < 256; i++) out[at + (i & 31)]! |= (source[i]! >> 2) << (i >> 5);
  writePairs(source, out, at + 32);
}
