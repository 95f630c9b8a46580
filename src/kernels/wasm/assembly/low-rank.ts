// Low-rank deltas of adapters: first down to the rank, then up to the rows. A token's arithmetic never depends on the others.
import { address, takeChunk } from './control';
import { floatDot } from './dot-float';
import { fma } from './vector-math';

/** Rows whose sums are computed side by side. */
const BLOCK: i32 = 16;

// @ts-ignore: decorator
@inline
function rowAt(rows: usize, i: i32): usize { return rows ? <usize>load<i32>(rows + (<usize>i << 2)) : <usize>i; }

/** args: 2 x, 3 a, 4 scratch, 5 columns, 6 rank, 7 row list or 0, 8 tokens. A chunk is four values of the scratch. */
export function lowRankDownOp(op: usize): void {
  const x = address(op, 8);
  const a = address(op, 12);
  const out = address(op, 16);
  const cols = load<i32>(op, 20);
  const rank = load<i32>(op, 24);
  const rows = address(op, 28);
  const items = load<i32>(op, 32) * rank;
  const rowBytes = <usize>cols << 2;
  for (let first = takeChunk(op) * 4; first < items; first = takeChunk(op) * 4) {
    for (let item = first; item < min(first + 4, items); item++) {
      const dot = floatDot(a + <usize>(item % rank) * rowBytes, x + rowAt(rows, item / rank) * rowBytes, cols);
      store<f32>(out + (<usize>item << 2), dot);
    }
  }
}

/**
 * args: 2 scratch, 3 b, 4 out, 5 rows, 6 rank, 7 row list or 0, 8 tokens, 9 scale (f32). A chunk is a block of rows, which is
 * transposed so that its rows are lanes, then multiplied with all tokens.
 */
export function lowRankUpOp(op: usize, scratch: usize): void {
  const b = address(op, 12);
  const numRows = load<i32>(op, 20);
  const rank = load<i32>(op, 24);
  const rows = address(op, 28);
  const tokens = load<i32>(op, 32);
  for (let first = takeChunk(op) * BLOCK; first < numRows; first = takeChunk(op) * BLOCK) {
    const count = min(BLOCK, numRows - first);
    for (let r = 0; r < rank; r++) {
      for (let n = 0; n < BLOCK; n++) {
        const value: f32 = n < count ? load<f32>(b + (<usize>((first + n) * rank + r) << 2)) : 0;
        store<f32>(scratch + (<usize>(r * BLOCK + n) << 2), value);
      }
    }
    for (let i = 0; i < tokens; i++) {
      const inner = address(op, 8) + (<usize>(i * rank) << 2);
      const out = address(op, 16) + ((rowAt(rows, i) * <usize>numRows + <usize>first) << 2);
      addBlock(inner, scratch, rank, load<f32>(op, 36), out, count);
    }
  }
}

function addBlock(inner: usize, turned: usize, rank: i32, scale: f32, out: usize, count: i32): void {
  let a = f32x4.splat(0);
  let b = a;
  let c = a;
  let d = a;
  const sums = turned + (<usize>(rank * BLOCK) << 2);
  for (let r = 0; r < rank; r++, inner += 4, turned += 64) {
    const value = v128.load_splat<f32>(inner);
    a = fma(value, v128.load(turned), a);
    b = fma(value, v128.load(turned, 16), b);
    c = fma(value, v128.load(turned, 32), c);
    d = fma(value, v128.load(turned, 48), d);
  }
  v128.store(sums, a);
  v128.store(sums, b, 16);
  v128.store(sums, c, 32);
  v128.store(sums, d, 48);
  for (let n: usize = 0; n < <usize>count << 2; n += 4) store<f32>(out + n, load<f32>(out + n) + scale * load<f32>(sums + n));
}
