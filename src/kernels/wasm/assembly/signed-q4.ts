// Q4_0 for signed dot products: the layout of dot-q4, with nibbles in two's complement (the file's value minus 8). Activation
// kind 0.
import { addNibbles1, addNibbles4, FORMAT_Q4 } from './signed-nibbles';
import { Q4_BLOCK_BYTES } from './dot-q4';

/** Sixteen rows, one token. */
export function signedQ4Tile1(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, 64);
  for (let b = 0; b < numBlocks; b++) {
    addNibbles1(FORMAT_Q4, i32x4.splat(0), w, v, u, y, 0, 0, x, out);
    w += Q4_BLOCK_BYTES;
    v += Q4_BLOCK_BYTES;
    u += Q4_BLOCK_BYTES;
    y += Q4_BLOCK_BYTES;
    x += 36;
  }
}

/** Sixteen rows, four tokens. */
export function signedQ4Tile4(w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  memory.fill(out, 0, 256);
  for (let b = 0; b < numBlocks; b++) {
    addNibbles4(FORMAT_Q4, i32x4.splat(0), w, v, u, y, 0, 0, x, out);
    w += Q4_BLOCK_BYTES;
    v += Q4_BLOCK_BYTES;
    u += Q4_BLOCK_BYTES;
    y += Q4_BLOCK_BYTES;
    x += 144;
  }
}
