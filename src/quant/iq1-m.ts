import { floatToHalf, halfFloats } from '../core/half.ts';
import { fitGrid, pickedPoints, storedScales, takeValues } from './fit-grid.ts';
import { putPoint } from './grid.ts';
import { IQ1_AIMS, IQ1_POINTS, NEGATIVE_OFFSET } from './iq1-points.ts';
import { createLevelFormat } from './level-format.ts';

const LAYOUT = { points: IQ1_POINTS, dim: 8, group: 16, maxStored: 7, unit: 1 / 8, numSets: 1, aims: IQ1_AIMS };

/**
 * 256 values in 16 sub-blocks: 32 bytes with the low bits of grid points, 16 bytes with a nibble per point (3 upper bits
 * and the sign of its offset), then four 16-bit words: 4 × 3 bits of scales, and a nibble of the half d on top.
 * value = d * (2 * scale + 1) * (grid ± 1/8)
 */
export const IQ1_M = createLevelFormat({
  name: 'IQ1_M',
  ggufId: 29,
  blockSize: 256,
  blockBytes: 56,
  decodeLevels(bytes, at, levels, to, scales, scaleAt) {
    let half = 0;
    for (let i = 0; i < 4; i++) half |= (bytes[at + 49 + 2 * i]! >> 4) << (4 * i);
    const d = halfFloats()[half]!;
    for (let sub = 0; sub < 16; sub++) {
      const word = bytes[at + 48 + (sub >> 2) * 2]! | (bytes[at + 49 + (sub >> 2) * 2]! << 8);
      scales[scaleAt + sub] = (d * (2 * ((word >> (3 * (sub & 3))) & 7) + 1)) / 8;
    }
    for (let i = 0; i < 32; i++) {
      const nibble = bytes[at + 32 + (i >> 1)]! >> ((i & 1) * 4);
      const point = bytes[at + i]! | ((nibble & 7) << 8);
      putPoint(IQ1_POINTS, point + (nibble & 8 ? NEGATIVE_OFFSET : 0), 8, 0, levels, to + i * 8);
    }
  },
  quantize(values, valueOffset, out, outOffset, numBlocks, weights) {
    const halves = halfFloats();
    for (let block = 0, at = outOffset; block < numBlocks; block++, at += 56) {
      takeValues(values, valueOffset + block * 256, weights);
      let half = 0;
      fitGrid(LAYOUT, (d) => halves[(half = floatToHalf(d))]!);
      out.fill(0, at + 32, at + 56);
      for (let i = 0; i < 32; i++) {
        const point = pickedPoints[i]! % NEGATIVE_OFFSET;
        out[at + i] = point;
        const nibble = (point >> 8) | (pickedPoints[i]! >= NEGATIVE_OFFSET ? 8 : 0);
        out[at + 32 + (i >> 1)]! |= nibble << ((i & 1) * 4);
      }
      for (let w = 0; w < 4; w++) {
        let word = ((half >> (4 * w)) & 15) << 12;
        for (let s = 0; s < 4; s++) word |= storedScales[4 * w + s]! << (3 * s);
        out[at + 48 + 2 * w] = word;
        out[at + 49 + 2 * w] = word >> 8;
      }
    }
  },
});
