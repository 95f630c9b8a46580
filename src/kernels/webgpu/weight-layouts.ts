import type { TensorTypeName } from '../../core/tensor-type.ts';
import { quantFormats } from '../../quant/index.ts';
import { activationRounding, type ActivationRoundingName } from '../activation-rounding.ts';
import * as layouts from './wgsl/layouts.ts';

export const BLOCK_COLS = 32;
const VECTOR_BYTES = 16;

/** How the matrices of a tensor type are stored and multiplied. */
export interface TypeLayout {
  readonly layout: layouts.WeightLayout;
  readonly rounding: ActivationRoundingName;
  /** Bytes behind the quants per block of 32 columns; Q4_K's are of eight blocks. */
  readonly infoBytesPerBlock: number;
}

const of = (layout: layouts.WeightLayout, infoBytesPerBlock = 0) => ({ layout, infoBytesPerBlock });

/** Types with their own layout. */
const OWN: Partial<Record<TensorTypeName, Omit<TypeLayout, 'rounding'>>> = {
  F32: of(layouts.F32),
  F16: of(layouts.F16),
  BF16: of(layouts.BF16),
  Q4_0: of(layouts.Q4_0, 2),
  Q8_0: of(layouts.Q8_0, 2),
  Q4_K: of(layouts.Q4_K, 20 / 8),
  Q6_K: of(layouts.Q6_K, 12),
};

/** Types without their own layout are stored as bytes with scales if they have such levels, and else as f32. */
export function typeLayout(type: TensorTypeName): TypeLayout {
  const rounding = activationRounding[type];
  const own = OWN[type];
  if (own !== undefined) return { ...own, rounding };
  if (quantFormats[type].decodeLevels !== undefined) return { ...of(layouts.LEVELS, 16), rounding };
  return { ...of(layouts.F32), rounding };
}

/** Bytes of rows in the layout: quants, then the rest, both in whole vectors. */
export function layoutBytes({ layout, infoBytesPerBlock }: TypeLayout, numRows: number, numCols: number): number {
  const blocks = numRows * Math.ceil(numCols / BLOCK_COLS);
  return (blocks * layout.quantVectors + Math.ceil((blocks * infoBytesPerBlock) / VECTOR_BYTES)) * VECTOR_BYTES;
}

/** The smallest storage binding that devices support: no part of a matrix is larger. */
const PART_BYTES = 2 ** 27;

/** Rows of each part of a matrix: only very large ones have several. */
export function partRows(layout: TypeLayout, numRows: number, numCols: number): number[] {
  const most = Math.max(8, Math.floor(PART_BYTES / layoutBytes(layout, 8, numCols)) * 8);
  const rows: number[] = [];
  for (let left = numRows; left > 0; left -= most) rows.push(Math.min(most, left));
  return rows;
}

/** Bytes of a whole matrix. */
export function matrixBytes(type: TensorTypeName, numRows: number, numCols: number): number {
  const layout = typeLayout(type);
  return partRows(layout, numRows, numCols).reduce((sum, rows) => sum + layoutBytes(layout, rows, numCols), 0);
}
