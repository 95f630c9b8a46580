import { halfFloats } from '../core/half.ts';
import { fitGridBlock, pickedPoints, storedScales, takeValues } from './fit-grid.ts';
import { putPoint } from './grid.ts';
import { IQ1_AIMS, IQ1_POINTS, NEGATIVE_OFFSET } from './iq1-points.ts';
import { createLevelFormat, putPair } from './level-format.ts';

const LAYOUT = { points: IQ1_POINTS, dim: 8, group: 32, maxStored: 7, unit: 1 / 8, numSets: 2, aims: IQ1_AIMS };

/**
 * 256 values in 8 sub-blocks of 32: half d, 32 bytes with the low bits of grid points, then a 16-bit word per sub-block:
 * 4 × 3 upper bits of points, a 3-bit scale, and the sign of the offset.
 * value = d * (2 * scale + 1) * (grid ± 1/8)
 */
export const IQ1_S = createLevelFormat({
  name: 'IQ1_S',
  ggufId: 19,
  blockSize: 256,
  blockBytes: 50,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    const d = halfFloats()[bytes[at]! | (bytes[at + 1]! << 8)]!;
    for (let sub = 0; sub < 8; sub++) {
      const word = bytes[at + 34 + 2 * sub]! | (bytes[at + 35 + 2 * sub]! << 8);
      putPair(scales, scaleAt + sub * 2, (d * (2 * ((word >> 12) & 7) + 1)) / 8);
      const first = word & 0x8000 ? NEGATIVE_OFFSET : 0;
      for (let i = 0; i < 4; i++) {
        const point = bytes[at + 2 + sub * 4 + i]! | (((word >> (3 * i)) & 7) << 8);
        putPoint(IQ1_POINTS, first + point, 8, 0, levels, to + sub * 32 + i * 8);
      }
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 50) {
      takeValues(values, valueOffset + block * 256, weights);
      fitGridBlock(LAYOUT, out, at, halves);
      for (let sub = 0; sub < 8; sub++) {
        let word = (storedScales[sub]! << 12) | (pickedPoints[sub * 4]! >= NEGATIVE_OFFSET ? 0x8000 : 0);
        for (let i = 0; i < 4; i++) {
          const point = pickedPoints[sub * 4 + i]! % NEGATIVE_OFFSET;
          out[at + 2 + sub * 4 + i] = point;
          word |= (point >> 8) << (3 * i);
        }
        out[at + 34 + 2 * sub] = word;
        out[at + 35 + 2 * sub] = word >> 8;
      }
    }
  },
});
