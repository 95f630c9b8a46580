import type { TensorTypeName } from '../../../core/tensor-type.ts';
import { quantFormats, rowBytes } from '../../../quant/index.ts';
import { checkFinite } from '../../../quant/rows.ts';
import { columnStart } from './input-products.ts';
import type { ErrorFactor } from './factor.ts';
import { createLevelTable } from './level-table.ts';

/** Rows that are rounded together: they share the reads of the factor. */
const TILE = 16;

/** Whether values of a type can be rounded one by one for scales that are chosen before. */
export const hasLevels = (type: TensorTypeName): boolean => quantFormats[type].levelCoding !== undefined;

/**
 * Encodes rows so that the error of their products with the inputs is small (GPTQ). Columns are rounded in order; each value is first
 * moved by as much as makes up for the errors of the columns before it. The scales of a block are fitted to its values with the corrections for all
 * blocks before it.
 */
export function roundRows(type: TensorTypeName, values: Float32Array, factor: ErrorFactor): Uint8Array {
  const { numCols } = factor;
  checkFinite(type, values, values);
  const out = new Uint8Array(rowBytes(type, values.length));
  const numRows = values.length / numCols;
  const rounder = createRounder(type, factor);
  for (let first = 0; first < numRows; first += TILE) {
    rounder(values, first, Math.min(TILE, numRows - first), out);
  }
  const readBack = new Float32Array(values.length);
  const { blockSize, dequantize } = quantFormats[type];
  dequantize(out, 0, readBack, 0, values.length / blockSize);
  checkFinite(type, readBack, values);
  return out;
}

type TileRounder = (values: Float32Array, firstRow: number, numRows: number, out: Uint8Array) => void;

function createRounder(type: TensorTypeName, factor: ErrorFactor): TileRounder {
  const { numCols } = factor;
  const { blockSize } = quantFormats[type];
  /** Four rows interleaved: the errors of a column lie together. */
  const errors = new Float64Array(TILE * numCols);
  /** Per column of a block and row of four, the sum of the errors of the blocks before times the factor. */
  const sums = new Float64Array(4 * blockSize);
  const roundBlock = createBlockRounder(type, factor, sums);
  const bytesPerRow = rowBytes(type, numCols);
  return (values, firstRow, numRows, out) => {
    for (let start = 0; start < numCols; start += blockSize) {
      for (let four = 0; four < numRows; four += 4) {
        const errorsAt = four * numCols;
        sumErrors(factor, errors, errorsAt, start, blockSize, sums);
        for (let lane = 0; lane < Math.min(4, numRows - four); lane++) {
          const row = firstRow + four + lane;
          const at = row * bytesPerRow + rowBytes(type, start);
          roundBlock({ values, from: row * numCols + start, out, at, start, errors, errorsAt: errorsAt + lane, lane });
        }
      }
    }
  };
}

/** sums[4 j + lane] = Σ over the columns before `start` of the error of a row times the factor of column start + j. */
function sumErrors(
  { entries }: ErrorFactor,
  errors: Float64Array,
  errorsAt: number,
  start: number,
  blockSize: number,
  sums: Float64Array,
): void {
  for (let j = 0; j < blockSize; j++) {
    const column = columnStart(start + j);
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    for (let i = 0; i < start; i++) {
      const entry = entries[column + i]!;
      const at = errorsAt + 4 * i;
      sum0 += entry * errors[at]!;
      sum1 += entry * errors[at + 1]!;
      sum2 += entry * errors[at + 2]!;
      sum3 += entry * errors[at + 3]!;
    }
    sums[4 * j] = sum0;
    sums[4 * j + 1] = sum1;
    sums[4 * j + 2] = sum2;
    sums[4 * j + 3] = sum3;
  }
}

/** One block of one row. */
interface BlockToRound {
  readonly values: Float32Array;
  readonly from: number;
  readonly out: Uint8Array;
  readonly at: number;
  /** Its first column. */
  readonly start: number;
  /** The error of column c is at `errorsAt` + 4 c. */
  readonly errors: Float64Array;
  readonly errorsAt: number;
  readonly lane: number;
}

function createBlockRounder(
  type: TensorTypeName,
  { entries }: ErrorFactor,
  sums: Float64Array,
): (block: BlockToRound) => void {
  const format = quantFormats[type];
  const { blockSize } = format;
  const table = createLevelTable(format);
  const corrected = new Float32Array(blockSize);
  const weights = new Float32Array(blockSize);
  const levels = new Uint8Array(blockSize);
  return ({ values, from, out, at, start, errors, errorsAt, lane }) => {
    /** Corrects each value by the errors before it, lets `round` replace it, and keeps its error. */
    const walk = (round: (j: number, value: number) => number): void => {
      for (let j = 0; j < blockSize; j++) {
        const column = columnStart(start + j);
        let sum = sums[4 * j + lane]!;
        for (let i = start; i < start + j; i++) sum += entries[column + i]! * errors[errorsAt + 4 * i]!;
        const value = values[from + j]!;
        errors[errorsAt + 4 * (start + j)] = value - round(j, value + sum / entries[column + start + j]!);
      }
    };
    // Without rounding: the values that the scales are for.
    walk((j, value) => (corrected[j] = value));
    for (let j = 0; j < blockSize; j++) weights[j] = entries[columnStart(start + j) + start + j]! ** 2;
    format.quantize!(corrected, 0, out, at, 1, weights);
    table.read(out, at);
    walk((j, value) => {
      const level = table.nearest(j, value);
      levels[j] = level;
      return table.valueOf(j, level);
    });
    format.levelCoding!.write(levels, out, at);
  };
}
