// The layouts of weights. Numbers must match ../layouts.ts.
import { Q4_BLOCK_BYTES } from './dot-q4';
import { Q8_BLOCK_BYTES, Q8_MIN_BLOCK_BYTES } from './dot-q8';
import { CODEBOOK_BLOCK_BYTES } from './dot-codebook';
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
  return (c / 32) * CODEBOOK_BLOCK_BYTES;
}
