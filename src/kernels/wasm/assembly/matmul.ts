import { address, takeChunk } from './control';
import { q4Tile1, q4Tile1Quad, q4Tile4 } from './dot-q4';
import { q8MinTile1, q8MinTile4, q8Tile1, q8Tile1Quad, q8Tile4 } from './dot-q8';
import { q4kTile1, q4kTile4, q6kTile1, q6kTile4 } from './dot-k';
import { codebookTile1, codebookTile4 } from './dot-codebook';
import { halvesTile1, halvesTile4 } from './dot-halves';
import { floatDot, widenBfloat, widenHalf } from './dot-float';
import { activationStride, roundToken } from './round-activations';
import { signedTile1, signedTile4 } from './signed-matmul';
import { groupBytes, hasHalfScales, LAYOUT_BF16, LAYOUT_F16, LAYOUT_F32, LAYOUT_Q4, LAYOUT_Q4K, LAYOUT_Q6K, LAYOUT_Q8, LAYOUT_Q8_MIN, valuesOf } from './layouts';

/** args: 2 x, 3 activations, 4 kind, 5 cols, 6 tokens, 7 tile. A chunk is one tile. */
export function roundOp(op: usize, scratch: usize): void {
  const x = address(op, 8);
  const activations = address(op, 12);
  const kind = load<i32>(op, 16);
  const cols = load<i32>(op, 20);
  const tokens = load<i32>(op, 24);
  const tile = load<i32>(op, 28);
  const stride = activationStride(kind, cols, tile);
  const numTiles = (tokens + tile - 1) / tile;
  for (let t = takeChunk(op); t < numTiles; t = takeChunk(op)) {
    for (let lane = 0; lane < tile; lane++) {
      const token = t * tile + lane;
      const row = token < tokens ? x + <usize>token * <usize>cols * 4 : 0;
      roundToken(kind, row, cols, activations + <usize>t * stride, tile, lane, scratch);
    }
  }
}

/** Adds bias and residual to four results and stores as many as the matrix has rows left. */
// @ts-ignore: decorator
@inline
function storeRows(value: v128, out: usize, rowsLeft: i32, bias: usize, accumulate: bool): void {
  if (rowsLeft >= 4) {
    if (bias) value = f32x4.add(value, v128.load(bias));
    if (accumulate) value = f32x4.add(value, v128.load(out));
    v128.store(out, value);
    return;
  }
  for (let r = 0; r < rowsLeft; r++) {
    let v = f32x4.extract_lane(value, 0);
    value = i8x16.shuffle(value, value, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3);
    if (bias) v += load<f32>(bias + (<usize>r << 2));
    if (accumulate) v += load<f32>(out + (<usize>r << 2));
    store<f32>(out + (<usize>r << 2), v);
  }
}

function tile1(layout: i32, w: usize, x: usize, cols: i32, out: usize): void {
  if (layout == LAYOUT_Q4) q4Tile1(w, x, cols / 32, out);
  else if (layout == LAYOUT_Q8) q8Tile1(w, x, cols / 32, out);
  else if (layout == LAYOUT_Q8_MIN) q8MinTile1(w, x, cols / 32, out);
  else if (layout == LAYOUT_Q4K) q4kTile1(w, x, cols / 256, out);
  else if (layout == LAYOUT_Q6K) q6kTile1(w, x, cols / 256, out);
  else if (hasHalfScales(layout)) halvesTile1(valuesOf(layout), w, x, cols / 32, out);
  else codebookTile1(valuesOf(layout), w, x, cols / 32, out);
}

function tile4(layout: i32, w: usize, x: usize, cols: i32, out: usize): void {
  if (layout == LAYOUT_Q4) q4Tile4(w, x, cols / 32, out);
  else if (layout == LAYOUT_Q8) q8Tile4(w, x, cols / 32, out);
  else if (layout == LAYOUT_Q8_MIN) q8MinTile4(w, x, cols / 32, out);
  else if (layout == LAYOUT_Q4K) q4kTile4(w, x, cols / 256, out);
  else if (layout == LAYOUT_Q6K) q6kTile4(w, x, cols / 256, out);
  else if (hasHalfScales(layout)) halvesTile4(valuesOf(layout), w, x, cols / 32, out);
  else codebookTile4(valuesOf(layout), w, x, cols / 32, out);
}

/**
 * args: 2 weights, 3 layout, 4 rows, 5 cols, 6 activations (or plain x), 7 kind, 8 tokens, 9 tile, 10 out, 11 bias,
 * 12 accumulate, 13 groups per chunk, 14 tiles per pass.
 */
export function matmulOp(op: usize, scratch: usize): void {
  const rows = load<i32>(op, 16);
  const groupsPerChunk = load<i32>(op, 52);
  const numGroups = (rows + 3) >> 2;
  const numChunks = (numGroups + groupsPerChunk - 1) / groupsPerChunk;
  for (let c = takeChunk(op); c < numChunks; c = takeChunk(op)) {
    const first = c * groupsPerChunk;
    multiplyGroups(address(op, 8), load<i32>(op, 12), rows, load<i32>(op, 20), address(op, 24), load<i32>(op, 28), load<i32>(op, 32), load<i32>(op, 36), address(op, 40), address(op, 44), load<i32>(op, 48) != 0, first, min(numGroups, first + groupsPerChunk), load<i32>(op, 56), scratch);
  }
}

/**
 * Row groups [first, end) times all tokens, in tiles of `tile`. Tokens are processed in passes small enough to stay in cache for
 * all these groups.
 */
export function multiplyGroups(weights: usize, layout: i32, rows: i32, cols: i32, x: usize, kind: i32, tokens: i32, tile: i32, out: usize, bias: usize, accumulate: bool, first: i32, end: i32, tilesPerPass: i32, scratch: usize): void {
  const groupStride = groupBytes(layout, cols);
  const rowBytes = <usize>rows << 2;
  if (layout <= LAYOUT_BF16) {
    for (let g = first; g < end; g++) floatGroup(layout, weights + <usize>g * groupStride, cols, x, tokens, out + (<usize>g << 4), rowBytes, rows - g * 4, bias ? bias + (<usize>g << 4) : 0, accumulate, scratch);
    return;
  }
  const tileStride = activationStride(kind, cols, tile);
  const numTiles = (tokens + tile - 1) / tile;
  for (let pass = 0; pass < numTiles; pass += tilesPerPass) {
    const passEnd = min(numTiles, pass + tilesPerPass);
    if (SIGNED_DOT) {
      for (let g = first; g < end; g += 4) {
        const w = weights + <usize>g * groupStride;
        // Past the chunk's end the last group is computed again: neither stored nor read beyond the matrix.
        const last = weights + <usize>(end - 1) * groupStride;
        const v = min(w + groupStride, last);
        const u = min(v + groupStride, last);
        const y = min(u + groupStride, last);
        const numStored = min(4, end - g);
        for (let t = pass; t < passEnd; t++) {
          const xt = x + <usize>t * tileStride;
          if (tile == 1) signedTile1(layout, w, v, u, y, xt, cols, scratch);
          else signedTile4(layout, w, v, u, y, xt, cols, scratch);
          const lanes = min(tile, tokens - t * tile);
          for (let i = 0; i < numStored; i++) {
            const groupOut = out + (<usize>(g + i) << 4);
            const groupBias = bias ? bias + (<usize>(g + i) << 4) : 0;
            for (let lane = 0; lane < lanes; lane++) {
              const result = v128.load(scratch + (<usize>(i * tile + lane) << 4));
              storeRows(result, groupOut + <usize>(t * tile + lane) * rowBytes, rows - (g + i) * 4, groupBias, accumulate);
            }
          }
        }
      }
      continue;
    }
    for (let g = first; g < end; g++) {
      const w = weights + <usize>g * groupStride;
      const groupOut = out + (<usize>g << 4);
      const groupBias = bias ? bias + (<usize>g << 4) : 0;
      if (tile == 1 && (layout == LAYOUT_Q4 || layout == LAYOUT_Q8) && g + 3 < end) {
        if (layout == LAYOUT_Q4) q4Tile1Quad(w, groupStride, x, cols / 32, scratch);
        else q8Tile1Quad(w, groupStride, x, cols / 32, scratch);
        for (let i = 0; i < 4; i++) {
          const at = <usize>i << 4;
          storeRows(v128.load(scratch + at), groupOut + at, rows - (g + i) * 4, groupBias ? groupBias + at : 0, accumulate);
        }
        g += 3;
        continue;
      }
      if (tile == 1) {
        tile1(layout, w, x, cols, scratch);
        storeRows(v128.load(scratch), groupOut, rows - g * 4, groupBias, accumulate);
        continue;
      }
      for (let t = pass; t < passEnd; t++) {
        tile4(layout, w, x + <usize>t * tileStride, cols, scratch);
        const lanes = min(4, tokens - t * 4);
        for (let lane = 0; lane < lanes; lane++) {
          storeRows(v128.load(scratch + (<usize>lane << 4)), groupOut + <usize>(t * 4 + lane) * rowBytes, rows - g * 4, groupBias, accumulate);
        }
      }
    }
  }
}

/** Four float rows times all tokens. Rows past the end do not exist and are not read. */
function floatGroup(layout: i32, w: usize, cols: i32, x: usize, tokens: i32, out: usize, rowBytes: usize, rowsLeft: i32, bias: usize, accumulate: bool, scratch: usize): void {
  const numRows = min(4, rowsLeft);
  const floatBytes = <usize>cols << 2;
  const widened = scratch + 64;
  let base = w;
  if (layout != LAYOUT_F32) {
    for (let r = 0; r < numRows; r++) {
      const src = w + <usize>r * (<usize>cols << 1);
      if (layout == LAYOUT_F16) widenHalf(src, widened + <usize>r * floatBytes, cols);
      else widenBfloat(src, widened + <usize>r * floatBytes, cols);
    }
    base = widened;
  }
  for (let t = 0; t < tokens; t++) {
    const xt = x + <usize>t * floatBytes;
    for (let r = 0; r < numRows; r++) {
      const target = out + <usize>t * rowBytes + (<usize>r << 2);
      let v = floatDot(base + <usize>r * floatBytes, xt, cols);
      if (bias) v += load<f32>(bias + (<usize>r << 2));
      if (accumulate) v += load<f32>(target);
      store<f32>(target, v);
    }
  }
}
