// The layouts of weights. Numbers must match ../layouts.ts.
import { Q4_BLOCK_BYTES } from './dot-q4';
import { Q8_BLOCK_BYTES, Q8_MIN_BLOCK_BYTES } from './dot-q8';
import { CODEBOOK_BLOCK_BYTES } from './dot-codebook';
import { HALVES_BLOCK_BYTES } from './dot-halves';
import { FP4_INDEX, FP4_VALUES, IQ2_INDEX, IQ2_VALUES, IQ3_INDEX, IQ3_VALUES, IQ4_INDEX, IQ4_VALUES, ODD_INDEX, ODD_VALUES } from './tables';
import { Q4K_BLOCK_BYTES, Q6K_BLOCK_BYTES } from './dot-k';

export const LAYOUT_F32: i32 = 0;
export const LAYOUT_F16: i32 = 1;
export const LAYOUT_BF16: i32 = 2;
export const LAYOUT_Q4: i32 = 3;
export const LAYOUT_Q8: i32 = 4;
export const LAYOUT_Q8_MIN: i32 = 5;
export const LAYOUT_Q4K: i32 = 6;
export const LAYOUT_Q6K: i32 = 7;
export const LAYOUT_IQ4: i32 = 8;
export const LAYOUT_IQ2: i32 = 9;
export const LAYOUT_FP4: i32 = 10;
export const LAYOUT_IQ3: i32 = 11;
export const LAYOUT_ODD: i32 = 12;
export const LAYOUT_IQ2_HALVES: i32 = 13;
export const LAYOUT_FP4_HALVES: i32 = 14;
export const LAYOUT_ODD_HALVES: i32 = 15;

/** Whether a codebook layout has a scale for each sixteen columns. */
// @ts-ignore: decorator
@inline
export function hasHalfScales(layout: i32): bool { return layout >= LAYOUT_IQ2_HALVES; }

/** The codebook of a layout, and the index of each value in it. */
export function valuesOf(layout: i32): usize {
  if (layout == LAYOUT_IQ4) return IQ4_VALUES;
  if (layout == LAYOUT_FP4 || layout == LAYOUT_FP4_HALVES) return FP4_VALUES;
  if (layout == LAYOUT_IQ3) return IQ3_VALUES;
  return layout == LAYOUT_ODD || layout == LAYOUT_ODD_HALVES ? ODD_VALUES : IQ2_VALUES;
}
export function indexOf(layout: i32): usize {
  if (layout == LAYOUT_IQ4) return IQ4_INDEX;
  if (layout == LAYOUT_FP4 || layout == LAYOUT_FP4_HALVES) return FP4_INDEX;
  if (layout == LAYOUT_IQ3) return IQ3_INDEX;
  return layout == LAYOUT_ODD || layout == LAYOUT_ODD_HALVES ? ODD_INDEX : IQ2_INDEX;
}

/** Bytes of a group of four interleaved rows; for the float layouts, of four plain rows. */
export function groupBytes(layout: i32, cols: i32): usize {
  const c = <usize>cols;
  if (layout == LAYOUT_F32) return c * 16;
  if (layout == LAYOUT_F16 || layout == LAYOUT_BF16) return c * 8;
  if (layout == LAYOUT_Q4) return (c / 32) * Q4_BLOCK_BYTES;
  if (layout == LAYOUT_Q8) return (c / 32) * Q8_BLOCK_BYTES;
  if (layout == LAYOUT_Q8_MIN) return (c / 32) * Q8_MIN_BLOCK_BYTES;
  if (layout == LAYOUT_Q4K) return (c / 256) * Q4K_BLOCK_BYTES;
  if (layout == LAYOUT_Q6K) return (c / 256) * Q6K_BLOCK_BYTES;
  return (c / 32) * (hasHalfScales(layout) ? HALVES_BLOCK_BYTES : CODEBOOK_BLOCK_BYTES);
}
