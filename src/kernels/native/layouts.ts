import type { TensorTypeName } from '../../core/tensor-type.ts';
import type { RecordedLayout } from '../recorded-parts.ts';

/** Incremented with every change of the packed layout: matrices stored by another version are not used. */
export const LAYOUT_VERSION = 1;

/** Rows interleaved in one group: the 32-bit lanes of a 512-bit register. */
export const GROUP_ROWS = 16;

/** Tokens side by side after rounding (c/pack.h). */
export const TILE_TOKENS = 16;
const ROUND_Q8_0 = 0;
const ROUND_Q8_K = 1;
const ROUND_BF16 = 2;

/** One byte, and the scale and sums of each block of 32 (c/pack.h). */
const ROUNDED_BYTES_PER_COL = 56 / 32;

const floats = (id: number, bytes: number, activation: number | null): RecordedLayout => ({
  id,
  blockCols: 1,
  blockBytes: GROUP_ROWS * bytes,
  activation,
  tileTokens: TILE_TOKENS,
  activationBytesPerCol: activation === null ? 0 : 4,
});
const packed = (id: number, blockCols: number, blockBytes: number, activation: number): RecordedLayout => ({
  id,
  blockCols,
  blockBytes,
  activation,
  tileTokens: TILE_TOKENS,
  activationBytesPerCol: ROUNDED_BYTES_PER_COL,
});

/** Numbers and sizes must match c/pack.h and c/layouts.c. */
export const NATIVE_LAYOUTS: Readonly<Record<TensorTypeName, RecordedLayout>> = {
  F32: floats(0, 4, null),
  F16: floats(1, 2, null),
  BF16: floats(2, 2, ROUND_BF16),
  Q4_0: packed(3, 32, 288, ROUND_Q8_0),
  Q8_0: packed(4, 32, 544, ROUND_Q8_0),
  Q5_0: packed(4, 32, 544, ROUND_Q8_0),
  Q3_K: packed(4, 32, 544, ROUND_Q8_K),
  Q4_1: packed(5, 32, 704, ROUND_Q8_0),
  Q5_1: packed(5, 32, 704, ROUND_Q8_0),
  Q2_K: packed(5, 32, 704, ROUND_Q8_K),
  Q5_K: packed(5, 32, 704, ROUND_Q8_K),
  Q4_K: packed(6, 256, 2368, ROUND_Q8_K),
  Q6_K: packed(7, 256, 3360, ROUND_Q8_K),
  IQ4_NL: packed(8, 32, 320, ROUND_Q8_0),
  IQ4_XS: packed(8, 32, 320, ROUND_Q8_K),
  IQ2_XXS: packed(9, 32, 320, ROUND_Q8_K),
  MXFP4: packed(10, 32, 320, ROUND_Q8_0),
  Q1_0: packed(10, 32, 320, ROUND_Q8_0),
  Q2_0: packed(10, 32, 320, ROUND_Q8_0),
  TQ1_0: packed(10, 32, 320, ROUND_Q8_K),
  TQ2_0: packed(10, 32, 320, ROUND_Q8_K),
  IQ3_XXS: packed(11, 32, 320, ROUND_Q8_K),
  IQ3_S: packed(12, 32, 320, ROUND_Q8_K),
  IQ1_S: packed(12, 32, 320, ROUND_Q8_K),
  IQ2_XS: packed(13, 32, 384, ROUND_Q8_K),
  IQ2_S: packed(13, 32, 384, ROUND_Q8_K),
  NVFP4: packed(14, 32, 384, ROUND_Q8_0),
  IQ1_M: packed(15, 32, 384, ROUND_Q8_K),
  Q8_K: packed(5, 32, 704, ROUND_Q8_K),
};
