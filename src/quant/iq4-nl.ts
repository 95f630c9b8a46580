import { halfFloats } from '../core/half.ts';
import type { QuantFormat } from './format.ts';
import { inverseOrZero, writeHalf } from './half-bytes.ts';
import { fitIq4Scale, IQ4_VALUES, nearestIq4 } from './iq4-codebook.ts';
import { writeHalves } from './level-bits.ts';

const levels = new Uint8Array(32);

/**
 * 32 values: half d, then 16 bytes; byte j holds value j in its low and value j + 16 in its high nibble.
 * value = d * codebook[nibble]
 */
export const IQ4_NL: QuantFormat = {
  name: 'IQ4_NL',
  ggufId: 20,
  blockSize: 32,
  blockBytes: 18,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    for (let block = 0, at = byteOffset, to = outOffset; block < numBlocks; block++, at += 18, to += 32) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      for (let j = 0; j < 16; j++) {
        const pair = bytes[at + 2 + j]!;
        out[to + j] = d * IQ4_VALUES[pair & 15]!;
        out[to + j + 16] = d * IQ4_VALUES[pair >> 4]!;
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 32, at += 18) {
      const inverse = inverseOrZero(writeHalf(out, at, fitIq4Scale(values, from, 32, weights), halves));
      for (let j = 0; j < 32; j++) levels[j] = nearestIq4(values[from + j]! * inverse);
      writeHalves(levels, 0, out, at + 2);
    }
  },
  levelCoding: {
    numLevels: 16,
    groupSize: 32,
    write(source, out, at) {
      writeHalves(source, 0, out, at + 2);
    },
  },
};
