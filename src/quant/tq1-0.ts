import { halfFloats } from '../core/half.ts';
import { createLevelFormat } from './level-format.ts';
import { fitTernary, ternaryLevels } from './ternary.ts';

const POWERS = [1, 3, 9, 27, 81];

/** Parts of a block: `numBytes` from byte `at` on hold `numDigits` values each; value v of byte m is `first + v * numBytes + m`. */
const PARTS = [
  { first: 0, at: 0, numBytes: 32, numDigits: 5 },
  { first: 160, at: 32, numBytes: 16, numDigits: 5 },
  { first: 240, at: 48, numBytes: 4, numDigits: 4 },
];

/** digits[byte * 5 + v]: -1, 0 or 1. Multiplying by a power of 3 moves a digit to the top of the byte. */
const digits = new Int8Array(256 * 5);
for (let i = 0; i < digits.length; i++) {
  digits[i] = (((Math.floor(i / 5) * POWERS[i % 5]!) & 255) * 3 >> 8) - 1; // prettier-ignore
}

/**
 * 256 values of -1, 0 and 1: 48 bytes of five base-3 digits and 4 bytes of four, as fractions of 256, then half d.
 * value = d * (digit - 1)
 */
export const TQ1_0 = createLevelFormat({
  name: 'TQ1_0',
  ggufId: 34,
  blockSize: 256,
  blockBytes: 54,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    scales.fill(halfFloats()[bytes[at + 52]! | (bytes[at + 53]! << 8)]!, scaleAt, scaleAt + 16);
    for (const part of PARTS) {
      for (let m = 0; m < part.numBytes; m++) {
        const digitsAt = bytes[at + part.at + m]! * 5;
        for (let v = 0; v < part.numDigits; v++) {
          levels[to + part.first + v * part.numBytes + m] = digits[digitsAt + v]!;
        }
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 54) {
      fitTernary(values, valueOffset + block * 256, 256, out, at + 52);
      for (const { first, at: partAt, numBytes, numDigits } of PARTS) {
        for (let m = 0; m < numBytes; m++) {
          let number = 0;
          for (let v = 0; v < 5; v++)
            number = number * 3 + (v < numDigits ? ternaryLevels[first + v * numBytes + m]! : 0);
          out[at + partAt + m] = Math.floor((number * 256 + 242) / 243); // rounded up, so that decoding rounds down to it
        }
      }
    }
  },
});
