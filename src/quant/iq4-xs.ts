import { halfFloats } from '../core/half.ts';
import type { ErrorWeights, QuantFormat } from './format.ts';
import { inverseOrZero, nearestLevel, writeHalf } from './half-bytes.ts';
import { fitIq4Scale, IQ4_VALUES, nearestIq4 } from './iq4-codebook.ts';
import { writeHalves } from './level-bits.ts';

const fitted = new Float64Array(8);
const levels = new Uint8Array(256);

/**
 * 256 values in 8 sub-blocks of 32: half d, 2 bytes with the two upper bits of each scale, 4 bytes with the lower
 * four, 128 bytes of nibbles, each sub-block's 16 as in IQ4_NL.
 * value = d * (scale - 32) * codebook[nibble]
 */
export const IQ4_XS: QuantFormat = {
  name: 'IQ4_XS',
  ggufId: 23,
  blockSize: 256,
  blockBytes: 136,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    let to = outOffset;
    for (let block = 0, at = byteOffset; block < numBlocks; block++, at += 136) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      const uppers = bytes[at + 2]! | (bytes[at + 3]! << 8);
      for (let sub = 0; sub < 8; sub++, to += 32) {
        const lower = (bytes[at + 4 + (sub >> 1)]! >> ((sub & 1) * 4)) & 15;
        const scale = d * ((lower | (((uppers >> (sub * 2)) & 3) << 4)) - 32);
        const pairsAt = at + 8 + sub * 16;
        for (let j = 0; j < 16; j++) {
          const pair = bytes[pairsAt + j]!;
          out[to + j] = scale * IQ4_VALUES[pair & 15]!;
          out[to + j + 16] = scale * IQ4_VALUES[pair >> 4]!;
        }
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 256, at += 136) {
      quantizeBlock(values, from, out, at, halves, weights);
    }
  },
  levelCoding: { numLevels: 16, groupSize: 32, write },
};

function quantizeBlock(
  values: Float32Array,
  from: number,
  out: Uint8Array,
  at: number,
  halves: Float32Array,
  weights: ErrorWeights,
): void {
  let extreme = 0;
  for (let sub = 0; sub < 8; sub++) {
    fitted[sub] = fitIq4Scale(values, from + sub * 32, 32, weights);
    if (Math.abs(fitted[sub]!) > Math.abs(extreme)) extreme = fitted[sub]!;
  }
  const d = writeHalf(out, at, extreme / -32, halves);
  out.fill(0, at + 2, at + 8);
  for (let sub = 0; sub < 8; sub++) {
    const scale = nearestLevel(fitted[sub]! * inverseOrZero(d), -32, 31);
    out[at + 2 + (sub >> 2)]! |= ((scale + 32) >> 4) << ((sub & 3) * 2);
    out[at + 4 + (sub >> 1)]! |= ((scale + 32) & 15) << ((sub & 1) * 4);
    const inverse = inverseOrZero(d * scale);
    for (let i = sub * 32; i < (sub + 1) * 32; i++) levels[i] = nearestIq4(values[from + i]! * inverse);
  }
  write(levels, out, at);
}

function write(source: Uint8Array, out: Uint8Array, at: number): void {
  for (let sub = 0; sub < 8; sub++) writeHalves(source, sub * 32, out, at + 8 + sub * 16);
}
