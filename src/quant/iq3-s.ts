import { halfFloats } from '../core/half.ts';
import { fitGridBlock, gridSigns, pickedPoints, storedScales, takeSigns } from './fit-grid.ts';
import { putPoint } from './grid.ts';
import { IQ3_S_GRID } from './iq3-s-grid.ts';
import { createLevelFormat, putPair } from './level-format.ts';

/** The largest magnitude is 15. */
const AIMS = [9, 11, 12, 13, 14, 15, 16, 18];
const LAYOUT = { points: IQ3_S_GRID, dim: 4, group: 32, maxStored: 15, unit: 1, numSets: 1, aims: AIMS };

/**
 * 256 values in 8 sub-blocks of 32: half d, 64 bytes with the low bits of grid points (4 values each), 8 bytes with the
 * ninth bits, 32 bytes of signs, 4 bytes with the 4-bit scales of two sub-blocks each.
 * value = d * (1 + 2 * scale) * ± grid
 */
export const IQ3_S = createLevelFormat({
  name: 'IQ3_S',
  ggufId: 21,
  blockSize: 256,
  blockBytes: 110,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    const d = halfFloats()[bytes[at]! | (bytes[at + 1]! << 8)]!;
    for (let sub = 0; sub < 8; sub++) {
      const scale = (bytes[at + 106 + (sub >> 1)]! >> ((sub & 1) * 4)) & 15;
      putPair(scales, scaleAt + sub * 2, d * (1 + 2 * scale));
    }
    for (let i = 0; i < 64; i++) {
      const point = bytes[at + 2 + i]! | (((bytes[at + 66 + (i >> 3)]! >> (i & 7)) & 1) << 8);
      putPoint(IQ3_S_GRID, point, 4, bytes[at + 74 + (i >> 1)]! >> ((i & 1) * 4), levels, to + i * 4);
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 110) {
      takeSigns(values, valueOffset + block * 256, false, weights);
      fitGridBlock(LAYOUT, out, at, halves);
      out.fill(0, at + 66, at + 74);
      for (let i = 0; i < 64; i++) {
        out[at + 2 + i] = pickedPoints[i]!;
        out[at + 66 + (i >> 3)]! |= (pickedPoints[i]! >> 8) << (i & 7);
      }
      for (let i = 0; i < 32; i++) out[at + 74 + i] = gridSigns[i]!;
      for (let i = 0; i < 4; i++) out[at + 106 + i] = storedScales[2 * i]! | (storedScales[2 * i + 1]! << 4);
    }
  },
});
