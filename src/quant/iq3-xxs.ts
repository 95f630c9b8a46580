import { halfFloats } from '../core/half.ts';
import { fitGridBlock, gridSigns, pickedPoints, storedScales, takeSigns } from './fit-grid.ts';
import { EVEN_SIGNS, putPoint } from './grid.ts';
import { IQ3_XXS_GRID } from './iq3-xxs-grid.ts';
import { createLevelFormat, putPair } from './level-format.ts';

/** The largest magnitude is 62. */
const AIMS = [36, 44, 48, 52, 56, 60, 62, 66, 72];
const LAYOUT = { points: IQ3_XXS_GRID, dim: 4, group: 32, maxStored: 15, unit: 1 / 4, numSets: 1, aims: AIMS };

/**
 * 256 values in 8 sub-blocks of 32: half d, 64 bytes of grid points (4 values each), then 32 bits per sub-block with
 * 4 × 7 sign bits from the lowest up and a 4-bit scale on top. The eighth sign makes the number of minuses even.
 * value = d * (scale + 0.5) / 2 * ± grid
 */
export const IQ3_XXS = createLevelFormat({
  name: 'IQ3_XXS',
  ggufId: 18,
  blockSize: 256,
  blockBytes: 98,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    const d = halfFloats()[bytes[at]! | (bytes[at + 1]! << 8)]!;
    for (let sub = 0; sub < 8; sub++) {
      const from = at + 66 + sub * 4;
      const word = bytes[from]! | (bytes[from + 1]! << 8) | (bytes[from + 2]! << 16) | (bytes[from + 3]! << 24);
      putPair(scales, scaleAt + sub * 2, d * (0.5 + (word >>> 28)) * 0.5);
      for (let i = 0; i < 4; i++) {
        const signs = EVEN_SIGNS[(word >>> (i * 7)) & 127]!;
        const pointAt = at + 2 + sub * 8 + i * 2;
        putPoint(IQ3_XXS_GRID, bytes[pointAt]!, 4, signs, levels, to + sub * 32 + i * 8);
        putPoint(IQ3_XXS_GRID, bytes[pointAt + 1]!, 4, signs >> 4, levels, to + sub * 32 + i * 8 + 4);
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 98) {
      takeSigns(values, valueOffset + block * 256, true, weights);
      fitGridBlock(LAYOUT, out, at, halves);
      for (let i = 0; i < 64; i++) out[at + 2 + i] = pickedPoints[i]!;
      for (let sub = 0; sub < 8; sub++) {
        let word = storedScales[sub]! << 28;
        for (let i = 0; i < 4; i++) word |= (gridSigns[sub * 4 + i]! & 127) << (i * 7);
        for (let i = 0; i < 4; i++) out[at + 66 + sub * 4 + i] = word >>> (i * 8);
      }
    }
  },
});
