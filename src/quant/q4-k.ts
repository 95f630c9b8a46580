import { halfFloats } from '../core/half.ts';
import { fitAffineSuperBlock } from './fit-super-block.ts';
import type { QuantFormat } from './format.ts';
import { writeNibbles } from './level-bits.ts';
import { packedMin, packedScale, packScalesAndMins } from './k-scales.ts';

const LAYOUT = { subBlock: 32, maxLevel: 15, maxScale: 63, dOffset: 0, dminOffset: 2 };
const scales = new Uint8Array(8);
const mins = new Uint8Array(8);
const levels = new Uint8Array(256);

/**
 * 256 values in 8 sub-blocks: half d, half dmin, 12 bytes of scales and mins (k-scales.ts), 128 bytes of nibbles.
 * Byte l of each 32 holds values l (low nibble) and l + 32 (high nibble) of its 64.
 * value = d * scale * nibble - dmin * min
 */
export const Q4_K: QuantFormat = {
  name: 'Q4_K',
  ggufId: 12,
  blockSize: 256,
  blockBytes: 144,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    let to = outOffset;
    for (let block = 0, at = byteOffset; block < numBlocks; block++, at += 144) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      const dmin = halves[bytes[at + 2]! | (bytes[at + 3]! << 8)]!;
      for (let sub = 0; sub < 8; sub += 2, to += 64) {
        const scale = d * packedScale(bytes, at + 4, sub);
        const min = dmin * packedMin(bytes, at + 4, sub);
        const nextScale = d * packedScale(bytes, at + 4, sub + 1);
        const nextMin = dmin * packedMin(bytes, at + 4, sub + 1);
        const pairsAt = at + 16 + sub * 16;
        for (let l = 0; l < 32; l++) {
          const pair = bytes[pairsAt + l]!;
          out[to + l] = scale * (pair & 15) - min;
          out[to + l + 32] = nextScale * (pair >> 4) - nextMin;
        }
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 256, at += 144) {
      fitAffineSuperBlock(LAYOUT, values, from, out, at, halves, scales, mins, levels, weights);
      packScalesAndMins(out, at + 4, scales, mins);
      writeNibbles(levels, out, at + 16);
    }
  },
  levelCoding: {
    numLevels: 16,
    groupSize: 32,
    write(source, out, at) {
      writeNibbles(source, out, at + 16);
    },
  },
};
