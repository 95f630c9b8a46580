import { halfFloats } from '../core/half.ts';
import { fitGridBlock, gridSigns, pickedPoints, storedScales, takeSigns } from './fit-grid.ts';
import { putPoint } from './grid.ts';
import { IQ2_S_GRID } from './iq2-s-grid.ts';
import { IQ2_AIMS } from './iq2-xxs.ts';
import { createLevelFormat } from './level-format.ts';

const LAYOUT = { points: IQ2_S_GRID, dim: 8, group: 16, maxStored: 15, unit: 1 / 8, numSets: 1, aims: IQ2_AIMS };

/**
 * 256 values in 16 sub-blocks: half d, 32 bytes with the low bits of grid points, 32 bytes of signs, 8 bytes with the
 * upper two bits of four points each, 8 bytes with the 4-bit scales of two sub-blocks each.
 * value = d * (scale + 0.5) / 4 * ± grid
 */
export const IQ2_S = createLevelFormat({
  name: 'IQ2_S',
  ggufId: 22,
  blockSize: 256,
  blockBytes: 82,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    const d = halfFloats()[bytes[at]! | (bytes[at + 1]! << 8)]!;
    for (let sub = 0; sub < 16; sub++) {
      scales[scaleAt + sub] = d * (0.5 + ((bytes[at + 74 + (sub >> 1)]! >> ((sub & 1) * 4)) & 15)) * 0.25;
    }
    for (let i = 0; i < 32; i++) {
      const upper = (bytes[at + 66 + (i >> 2)]! >> ((i & 3) * 2)) & 3;
      putPoint(IQ2_S_GRID, bytes[at + 2 + i]! | (upper << 8), 8, bytes[at + 34 + i]!, levels, to + i * 8);
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 82) {
      takeSigns(values, valueOffset + block * 256, false, weights);
      fitGridBlock(LAYOUT, out, at, halves);
      out.fill(0, at + 66, at + 74);
      for (let i = 0; i < 32; i++) {
        out[at + 2 + i] = pickedPoints[i]!;
        out[at + 34 + i] = gridSigns[i]!;
        out[at + 66 + (i >> 2)]! |= (pickedPoints[i]! >> 8) << ((i & 3) * 2);
      }
      for (let i = 0; i < 8; i++) out[at + 74 + i] = storedScales[2 * i]! | (storedScales[2 * i + 1]! << 4);
    }
  },
});
