import { signedCodebookTile1, signedCodebookTile4 } from './signed-codebook';
import { signedHalvesTile1, signedHalvesTile4 } from './signed-halves';
import { signedQ4Tile1, signedQ4Tile4 } from './signed-q4';
import { signedQ4KTile1, signedQ4KTile4 } from './signed-q4k';
import { signedQ6KTile1, signedQ6KTile4 } from './signed-q6k';
import { signedQ8MinTile1, signedQ8MinTile4, signedQ8Tile1, signedQ8Tile4 } from './signed-q8';
import { hasHalfScales, LAYOUT_Q4, LAYOUT_Q4K, LAYOUT_Q6K, LAYOUT_Q8, LAYOUT_Q8_MIN, valuesOf } from './layouts';

/** Four groups at `w`, `v`, `u`, `y` times a tile of one token: f32x4[4 groups] at `out`. */
export function signedTile1(layout: i32, w: usize, v: usize, u: usize, y: usize, x: usize, cols: i32, out: usize): void {
  if (layout == LAYOUT_Q4) signedQ4Tile1(w, v, u, y, x, cols / 32, out);
  else if (layout == LAYOUT_Q8) signedQ8Tile1(w, v, u, y, x, cols / 32, out);
  else if (layout == LAYOUT_Q8_MIN) signedQ8MinTile1(w, v, u, y, x, cols / 32, out);
  else if (layout == LAYOUT_Q4K) signedQ4KTile1(w, v, u, y, x, cols / 256, out);
  else if (layout == LAYOUT_Q6K) signedQ6KTile1(w, v, u, y, x, cols / 256, out);
  else if (hasHalfScales(layout)) signedHalvesTile1(valuesOf(layout), w, v, u, y, x, cols / 32, out);
  else signedCodebookTile1(valuesOf(layout), w, v, u, y, x, cols / 32, out);
}

/** The same with a tile of four tokens: f32x4[4 groups][4 tokens] at `out`. */
export function signedTile4(layout: i32, w: usize, v: usize, u: usize, y: usize, x: usize, cols: i32, out: usize): void {
  if (layout == LAYOUT_Q4) signedQ4Tile4(w, v, u, y, x, cols / 32, out);
  else if (layout == LAYOUT_Q8) signedQ8Tile4(w, v, u, y, x, cols / 32, out);
  else if (layout == LAYOUT_Q8_MIN) signedQ8MinTile4(w, v, u, y, x, cols / 32, out);
  else if (layout == LAYOUT_Q4K) signedQ4KTile4(w, v, u, y, x, cols / 256, out);
  else if (layout == LAYOUT_Q6K) signedQ6KTile4(w, v, u, y, x, cols / 256, out);
  else if (hasHalfScales(layout)) signedHalvesTile4(valuesOf(layout), w, v, u, y, x, cols / 32, out);
  else signedCodebookTile4(valuesOf(layout), w, v, u, y, x, cols / 32, out);
}
