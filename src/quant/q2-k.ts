import { halfFloats } from '../core/half.ts';
import { fitAffineSuperBlock } from './fit-super-block.ts';
import type { QuantFormat } from './format.ts';
import { writePairs } from './level-bits.ts';

const LAYOUT = { subBlock: 16, maxLevel: 3, maxScale: 15, dOffset: 80, dminOffset: 82 };
const scales = new Uint8Array(16);
const mins = new Uint8Array(16);
const levels = new Uint8Array(256);

/**
 * 256 values in 16 sub-blocks: 16 bytes (low nibble scale, high nibble min), 64 bytes of levels, half d, half dmin.
 * Level byte l of each 32 holds values l, l + 32, l + 64, l + 96 of its 128, two bits each from the lowest up.
 * value = d * scale * level - dmin * min
 */
export const Q2_K: QuantFormat = {
  name: 'Q2_K',
  ggufId: 10,
  blockSize: 256,
  blockBytes: 84,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    let to = outOffset;
    for (let block = 0, at = byteOffset; block < numBlocks; block++, at += 84) {
      const d = halves[bytes[at + 80]! | (bytes[at + 81]! << 8)]!;
      const dmin = halves[bytes[at + 82]! | (bytes[at + 83]! << 8)]!;
      for (let sub = 0; sub < 16; sub++, to += 16) {
        const packed = bytes[at + sub]!;
        const scale = d * (packed & 15);
        const min = dmin * (packed >> 4);
        const shift = sub & 6;
        const levelsAt = at + 16 + (sub >> 3) * 32 + (sub & 1) * 16;
        for (let l = 0; l < 16; l++) out[to + l] = scale * ((bytes[levelsAt + l]! >> shift) & 3) - min;
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 256, at += 84) {
      fitAffineSuperBlock(LAYOUT, values, from, out, at, halves, scales, mins, levels, weights);
      for (let sub = 0; sub < 16; sub++) out[at + sub] = scales[sub]! | (mins[sub]! << 4);
      writePairs(levels, out, at + 16);
    }
  },
  levelCoding: {
    numLevels: 4,
    groupSize: 16,
    write(source, out, at) {
      writePairs(source, out, at + 16);
    },
  },
};
