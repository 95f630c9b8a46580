import { halfFloats } from '../core/half.ts';
import { fitGridBlock, gridSigns, pickedPoints, storedScales, takeSigns } from './fit-grid.ts';
import { EVEN_SIGNS, putPoint } from './grid.ts';
import { IQ2_XS_GRID } from './iq2-xs-grid.ts';
import { IQ2_AIMS } from './iq2-xxs.ts';
import { createLevelFormat } from './level-format.ts';

const LAYOUT = { points: IQ2_XS_GRID, dim: 8, group: 16, maxStored: 15, unit: 1 / 8, numSets: 1, aims: IQ2_AIMS };

/**
 * 256 values in 16 sub-blocks: half d, then 32 16-bit words: a grid point in the low 9 bits and 7 sign bits (the eighth
 * makes the number of minuses even), then 8 bytes with the 4-bit scales of two sub-blocks each.
 * value = d * (scale + 0.5) / 4 * ± grid
 */
export const IQ2_XS = createLevelFormat({
  name: 'IQ2_XS',
  ggufId: 17,
  blockSize: 256,
  blockBytes: 74,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    const d = halfFloats()[bytes[at]! | (bytes[at + 1]! << 8)]!;
    for (let sub = 0; sub < 16; sub++) {
      scales[scaleAt + sub] = d * (0.5 + ((bytes[at + 66 + (sub >> 1)]! >> ((sub & 1) * 4)) & 15)) * 0.25;
    }
    for (let i = 0; i < 32; i++) {
      const word = bytes[at + 2 + 2 * i]! | (bytes[at + 3 + 2 * i]! << 8);
      putPoint(IQ2_XS_GRID, word & 511, 8, EVEN_SIGNS[word >> 9]!, levels, to + i * 8);
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 74) {
      takeSigns(values, valueOffset + block * 256, true, weights);
      fitGridBlock(LAYOUT, out, at, halves);
      for (let i = 0; i < 32; i++) {
        const word = pickedPoints[i]! | ((gridSigns[i]! & 127) << 9);
        out[at + 2 + 2 * i] = word;
        out[at + 3 + 2 * i] = word >> 8;
      }
      for (let i = 0; i < 8; i++) out[at + 66 + i] = storedScales[2 * i]! | (storedScales[2 * i + 1]! << 4);
    }
  },
});
