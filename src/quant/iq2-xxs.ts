import { halfFloats } from '../core/half.ts';
import { fitGridBlock, gridSigns, pickedPoints, storedScales, takeSigns } from './fit-grid.ts';
import type { QuantFormat } from './format.ts';
import { IQ2_XXS_GRID, IQ2_XXS_SIGNS } from './iq2-xxs-grid.ts';

/** The largest magnitude is 43. */
export const IQ2_AIMS = [20, 25, 30, 35, 40, 43, 46, 50, 55, 60];
const LAYOUT = {
  points: IQ2_XXS_GRID,
  dim: 8,
  group: 32,
  maxStored: 15,
  unit: 1 / 8,
  numSets: 1,
  aims: IQ2_AIMS,
};

/**
 * 256 values in 8 sub-blocks of 32: half d, then 8 bytes per sub-block: 4 grid points (iq2-xxs-grid.ts), then 32 bits
 * with 4 × 7 sign bits from the lowest up and a 4-bit scale on top. The eighth sign makes the number of minuses even.
 * value = d * (scale + 0.5) / 4 * ± grid
 */
export const IQ2_XXS: QuantFormat = {
  name: 'IQ2_XXS',
  ggufId: 16,
  blockSize: 256,
  blockBytes: 66,
  dequantize(bytes, byteOffset, out, outOffset, numBlocks) {
    const halves = halfFloats();
    let to = outOffset;
    for (let block = 0, at = byteOffset; block < numBlocks; block++, at += 66) {
      const d = halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
      for (let subAt = at + 2; subAt < at + 66; subAt += 8) {
        const signsAndScale =
          bytes[subAt + 4]! | (bytes[subAt + 5]! << 8) | (bytes[subAt + 6]! << 16) | (bytes[subAt + 7]! << 24);
        const scale = d * (0.5 + (signsAndScale >>> 28)) * 0.25;
        for (let point = 0; point < 4; point++, to += 8) {
          const signsAt = ((signsAndScale >>> (point * 7)) & 127) * 8;
          const gridAt = bytes[subAt + point]! * 8;
          for (let k = 0; k < 8; k++) out[to + k] = scale * IQ2_XXS_GRID[gridAt + k]! * IQ2_XXS_SIGNS[signsAt + k]!;
        }
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, from = valueOffset, at = outOffset; block < numBlocks; block++, from += 256, at += 66) {
      takeSigns(values, from, true, weights);
      fitGridBlock(LAYOUT, out, at, halves);
      for (let sub = 0; sub < 8; sub++) {
        let signsAndScale = storedScales[sub]! << 28;
        for (let i = 0; i < 4; i++) {
          out[at + 2 + sub * 8 + i] = pickedPoints[sub * 4 + i]!;
          signsAndScale |= (gridSigns[sub * 4 + i]! & 127) << (i * 7);
        }
        for (let i = 0; i < 4; i++) out[at + 6 + sub * 8 + i] = signsAndScale >>> (i * 8);
      }
    }
  },
};
