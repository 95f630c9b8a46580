import { RuvLLMError } from '../core/errors.ts';
import { signedExtreme } from './extremes.ts';
import { FP4_VALUES, fp4Error, nearestFp4 } from './fp4.ts';
import { createLevelFormat } from './level-format.ts';

/** Scales tried on each side of the one that maps the extreme value to 6. */
const STEPS = 3;
const LAST_SCALE = 126;
/** 6 * 448 */
const MAX_VALUE = 2688;

/** Half of an 8-bit float with four exponent bits, because codes are doubled. Bit 7 is ignored, except that 127 stands for 0. */
const SCALES = new Float32Array(256);
for (let bits = 0; bits < 256; bits++) {
  const [exponent, mantissa] = [(bits >> 3) & 15, bits & 7];
  if (bits === 127) continue;
  SCALES[bits] = exponent === 0 ? mantissa * 2 ** -10 : (8 + mantissa) * 2 ** (exponent - 11);
}

/**
 * 64 values in 4 sub-blocks of 16: an 8-bit float scale per sub-block, then 8 bytes per sub-block; byte j holds value j
 * in its low and value j + 8 in its high nibble.
 * value = scale * fp4
 */
export const NVFP4 = createLevelFormat({
  name: 'NVFP4',
  ggufId: 40,
  blockSize: 64,
  blockBytes: 36,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    for (let sub = 0; sub < 4; sub++) {
      scales[scaleAt + sub] = SCALES[bytes[at + sub]!]!;
      for (let j = 0; j < 8; j++) {
        const pair = bytes[at + 4 + sub * 8 + j]!;
        levels[to + sub * 16 + j] = FP4_VALUES[pair & 15]!;
        levels[to + sub * 16 + j + 8] = FP4_VALUES[pair >> 4]!;
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks) {
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 36) {
      for (let sub = 0; sub < 4; sub++) {
        const from = valueOffset + block * 64 + sub * 16;
        const bits = bestScale(values, from);
        out[at + sub] = bits;
        const inverse = bits === 0 ? 0 : 1 / SCALES[bits]!;
        for (let j = 0; j < 8; j++) {
          const low = nearestFp4(values[from + j]! * inverse);
          out[at + 4 + sub * 8 + j] = low | (nearestFp4(values[from + j + 8]! * inverse) << 4);
        }
      }
    }
  },
});

function bestScale(values: Float32Array, from: number): number {
  const target = Math.abs(signedExtreme(values, from, 16)) / 12;
  if (!(target <= MAX_VALUE / 12)) {
    throw new RuvLLMError(
      'invalid_option',
      `value ${target * 12} cannot be stored as NVFP4, whose largest is ${MAX_VALUE}`,
    );
  }
  let middle = 0;
  while (middle < LAST_SCALE && SCALES[middle]! < target) middle++;
  let best = 0;
  let bestError = target > 0 ? Infinity : 0;
  for (let bits = Math.max(1, middle - STEPS); bits <= Math.min(LAST_SCALE, middle + STEPS); bits++) {
    const error = fp4Error(values, from, 16, SCALES[bits]!);
    if (error < bestError) {
      bestError = error;
      best = bits;
    }
  }
  return best;
}
