import type { TensorTypeName } from '../../core/tensor-type.ts';

/** How a tensor type is kept and computed; the numbers are shared with assembly/layouts.ts and round-activations.ts. */
export interface WasmLayout {
  readonly id: number;
  /** Columns per block of the layout; a matrix's columns are a multiple of it. */
  readonly blockCols: number;
  /** Bytes of one block of four rows. */
  readonly blockBytes: number;
  /** Which rounding of activations the layout meets; null: none, plain f32. */
  readonly activation: number | null;
  /** Whether tokens go through the kernels four at a time; plain float rows do not. */
  readonly isTiled: boolean;
  /** Bytes of rounded activations per column and token. */
  readonly activationBytesPerCol: number;
}

const ROUND_Q4 = 0;
const ROUND_I16 = 1;
const ROUND_I16_K = 2;
const ROUND_K = 3;
const ROUND_SPLIT = 4;
const ROUND_SPLIT_K = 5;
const ROUND_BF16 = 6;
export const NUM_ROUNDINGS = 7;

const floats = (id: number, bytes: number): WasmLayout => ({
  id,
  blockCols: 1,
  blockBytes: 4 * bytes,
  activation: null,
  isTiled: false,
  activationBytesPerCol: 0,
});
const eightBits = (activation: number): WasmLayout => ({
  id: 4,
  blockCols: 32,
  blockBytes: 136,
  activation,
  isTiled: true,
  activationBytesPerCol: 76 / 32,
});
const eightBitsWithMins = (activation: number): WasmLayout => ({
  id: 5,
  blockCols: 32,
  blockBytes: 176,
  activation,
  isTiled: true,
  activationBytesPerCol: 76 / 32,
});
const codebook = (id: number, activation: number): WasmLayout => ({
  id,
  blockCols: 32,
  blockBytes: 88,
  activation,
  isTiled: true,
  activationBytesPerCol: 68 / 32,
});
const kQuant = (id: number, blockBytes: number): WasmLayout => ({
  id,
  blockCols: 256,
  blockBytes,
  activation: ROUND_K,
  isTiled: true,
  activationBytesPerCol: 308 / 256,
});

/** Formats without a layout of their own take the nearest one that holds their values exactly. */
export const WASM_LAYOUTS: Readonly<Record<TensorTypeName, WasmLayout>> = {
  F32: floats(0, 4),
  F16: floats(1, 2),
  BF16: { ...floats(2, 2), activation: ROUND_BF16, activationBytesPerCol: 4 },
  Q4_0: { id: 3, blockCols: 32, blockBytes: 72, activation: ROUND_Q4, isTiled: true, activationBytesPerCol: 40 / 32 },
  Q8_0: eightBits(ROUND_I16),
  Q5_0: eightBits(ROUND_I16),
  IQ4_NL: codebook(8, ROUND_SPLIT),
  Q4_1: eightBitsWithMins(ROUND_I16),
  Q5_1: eightBitsWithMins(ROUND_I16),
  Q2_K: eightBitsWithMins(ROUND_I16_K),
  Q5_K: eightBitsWithMins(ROUND_I16_K),
  Q3_K: eightBits(ROUND_I16_K),
  IQ2_XXS: codebook(9, ROUND_SPLIT_K),
  IQ4_XS: codebook(8, ROUND_SPLIT_K),
  Q4_K: kQuant(6, 608),
  Q6_K: kQuant(7, 848),
};

/** Rows are kept in groups of four; the last group is padded. */
export function matrixBytes(type: TensorTypeName, numRows: number, numCols: number): number {
  const { blockCols, blockBytes } = WASM_LAYOUTS[type];
  return Math.ceil(numRows / 4) * (numCols / blockCols) * blockBytes;
}

/** Bytes of rounded activations for `tokens` tokens, padded to whole tiles of four. */
export function activationBytes(layout: WasmLayout, numCols: number, tokens: number): number {
  return Math.ceil(tokens / 4) * 4 * numCols * layout.activationBytesPerCol;
}
