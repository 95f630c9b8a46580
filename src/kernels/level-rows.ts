import { RuvLLMError } from '../core/errors.ts';
import { quantFormats, rowBytes } from '../quant/index.ts';
import type { MatrixSource } from './contract.ts';

/** The type number of staged rows of levels; must match c/repack.c and assembly/repack.ts. */
export const LEVELS_TYPE = 255;

/** Larger scales overflow sums that are finite in other packs; no weight is that large. */
const MAX_SCALE = 2 ** 100;

/** Bytes of a staged row: i8[numCols] levels, then f32[numCols / 16] scales. */
export function levelRowBytes(numCols: number): number {
  return numCols + numCols / 4;
}

/** Reads `numRows` rows from `firstRow` on and decodes them to levels and scales in `staged`. */
export function decodeRows(source: MatrixSource, firstRow: number, numRows: number, staged: Uint8Array): void {
  const { name, type, numCols } = source;
  const { blockSize, blockBytes, decodeLevels } = quantFormats[type];
  const fileBytes = rowBytes(type, numCols);
  const bytes = new Uint8Array(numRows * fileBytes);
  source.readInto(bytes, firstRow * fileBytes);
  const stagedBytes = levelRowBytes(numCols);
  for (let row = 0; row < numRows; row++) {
    const at = staged.byteOffset + row * stagedBytes;
    const levels = new Int8Array(staged.buffer, at, numCols);
    const scales = new Float32Array(staged.buffer, at + numCols, numCols / 16);
    for (let block = 0; block < numCols / blockSize; block++) {
      const from = row * fileBytes + block * blockBytes;
      decodeLevels!(bytes, from, levels, block * blockSize, scales, (block * blockSize) / 16);
    }
    if (!scales.every((scale) => Math.abs(scale) < MAX_SCALE)) {
      throw new RuvLLMError(
        'invalid_model_file',
        `${name} (${type}) has a scale that is infinite, too large or not a number in row ${firstRow + row}`,
        { data: { name, type, firstRow: firstRow + row, numRows: 1 } },
      );
    }
  }
}
