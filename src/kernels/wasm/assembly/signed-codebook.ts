// Codebook formats for signed dot products, in the layout of dot-codebook. Values and activations keep their eight bits:
// nothing is split, and row sums are not needed. Activation kinds 4 and 5.
import { addNibbles1, addNibbles4, FORMAT_CODEBOOK } from './signed-nibbles';
import { CODEBOOK_BLOCK_BYTES } from './dot-codebook';

/** Sixteen rows, one token. */
export function signedCodebookTile1(tableAt: usize, w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  memory.fill(out, 0, 64);
  for (let b = 0; b < numBlocks; b++) {
    addNibbles1(FORMAT_CODEBOOK, table, w, v, u, y, 16, 0, x, out);
    w += CODEBOOK_BLOCK_BYTES;
    v += CODEBOOK_BLOCK_BYTES;
    u += CODEBOOK_BLOCK_BYTES;
    y += CODEBOOK_BLOCK_BYTES;
    x += 36;
  }
}

/** Sixteen rows, four tokens. */
export function signedCodebookTile4(tableAt: usize, w: usize, v: usize, u: usize, y: usize, x: usize, numBlocks: i32, out: usize): void {
  const table = v128.load(tableAt);
  memory.fill(out, 0, 256);
  for (let b = 0; b < numBlocks; b++) {
    addNibbles4(FORMAT_CODEBOOK, table, w, v, u, y, 16, 0, x, out);
    w += CODEBOOK_BLOCK_BYTES;
    v += CODEBOOK_BLOCK_BYTES;
    u += CODEBOOK_BLOCK_BYTES;
    y += CODEBOOK_BLOCK_BYTES;
    x += 144;
  }
}
