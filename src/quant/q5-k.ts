import { halfFloats } from '../core/half.ts';
import { fitAffineSuperBlock } from './fit-super-block.ts';
import type { QuantFormat } from './format.ts';
import { writeNibbles } from './level-bits.ts';
import { packedMin, packedScale, packScalesAndMins } from './k-scales.ts';

const LAYOUT = { subBlock: 32, maxLevel: 31, maxScale: 63, dOffset: 0, dminOffset: 2 };
const scales = new Uint8Array(8);
const mins = new Uint8Array(8);
const levels = new Uint8Array(256);

/**
 * 256 values in 8 sub-blocks: half d, half dmin, 12 bytes of scales and mins (k-scales.ts), 32 bytes of fifth bits
 * (bit s of byte l belongs to value l of sub-block s), 128 bytes of nibbles as in Q4_K.
 * value = d * scale * level - dmin * min
 */
export const Q5_K: QuantFormat = {
  name: 'Q5_K',
  ggufId: 13,
  blockSize: 256,
  blockBytes: 176,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    let to = outOffset;
    for (let block = 0, at = byteOffset; block < numBlocks; block++, at += 176) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      const dmin = halves[bytes[at + 2]! | (bytes[at + 3]! << 8)]!;
      for (let sub = 0; sub < 8; sub += 2, to += 64) {
        const scale = d * packedScale(bytes, at + 4, sub);
        const min = dmin * packedMin(bytes, at + 4, sub);
        const nextScale = d * packedScale(bytes, at + 4, sub + 1);
        const nextMin = dmin * packedMin(bytes, at + 4, sub + 1);
        const pairsAt = at + 48 + sub * 16;
        for (let l = 0; l < 32; l++) {
          const pair = bytes[pairsAt + l]!;
          const fifths = bytes[at + 16 + l]! >> sub;
          out[to + l] = scale * ((pair & 15) | ((fifths & 1) << 4)) - min;
          out[to + l + 32] = nextScale * ((pair >> 4) | ((fifths & 2) << 3)) - nextMin;
        }
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 256, at += 176) {
      fitAffineSuperBlock(LAYOUT, values, from, out, at, halves, scales, mins, levels, weights);
      packScalesAndMins(out, at + 4, scales, mins);
      write(levels, out, at);
    }
  },
  levelCoding: { numLevels: 32, groupSize: 32, write },
};

function write(source: Uint8Array, out: Uint8Array, at: number): void {
  out.fill(0, at + 16, at + 48);
  for (let i = 0; i < 256; i++) out[at + 16 + (i & 31)]! |= (source[i]! >> 4) << (i >> 5);
  writeNibbles(source, out, at + 48);
}
