// Paged attention with online softmax. Work is split into (sequence, KV head, tile of tokens): a page is widened to f32
// once for all query rows of the tile and head group. A row's arithmetic depends only on its own pages, in order, so
// chunked = whole and batched = alone, bit for bit.
import { address, hasBadHalves, noteBadHalf, takeChunk } from './control';
import { widenHalf } from './dot-float';
import { PAGES_F32, widenPacked } from './kv-pages';
import { addFourRows, scoreFourRows } from './attention-rows';
import { expVector, floatToHalf, fma, finiteHalfToFloat4, horizontalMax, horizontalSum, tanhVector } from './vector-math';

const PAGE_TOKENS: i32 = 16;
/** Tokens per tile: with 4 heads per group a page serves 32 query rows; a 512-token prompt splits 16 ways per head. */
const TILE: i32 = 8;
/** Lower than any real score, yet finite: differences never become NaN. */
const LOWEST: f32 = -3.0e38;

/** args: 2 base, 3 pageBytes, 4 layer offset, 5 kvHeads, 6 headDim, 7 k, 8 v, 9 slots, 10 tokens, 11 whether
 * pages are f32. A chunk is a token. */
export function writeKvOp(op: usize): void {
  const base = address(op, 8) + address(op, 16);
  const pageBytes = address(op, 12);
  const kvHeads = load<i32>(op, 20);
  const headDim = load<i32>(op, 24);
  const k = address(op, 28);
  const v = address(op, 32);
  const slots = address(op, 36);
  const tokens = load<i32>(op, 40);
  const isFloat = load<i32>(op, 44) != 0;
  const width = <usize>(kvHeads * headDim);
  for (let t = takeChunk(op); t < tokens; t = takeChunk(op)) {
    const slot = load<i32>(slots + (<usize>t << 2));
    const page = base + <usize>(slot >> 4) * pageBytes;
    const inPage = <usize>(slot & 15);
    const values = page + width * (isFloat ? 64 : 32);
    const fromK = k + <usize>t * width * 4;
    const fromV = v + <usize>t * width * 4;
    for (let h = 0; h < kvHeads; h++) {
      for (let d = 0; d < headDim; d++) {
        const i = <usize>(h * headDim + d);
        const valueAt = (<usize>(h * PAGE_TOKENS) + inPage) * <usize>headDim + <usize>d;
        if (isFloat) {
          store<f32>(page + (i * 16 + inPage) * 4, load<f32>(fromK + i * 4));
          store<f32>(values + valueAt * 4, load<f32>(fromV + i * 4));
        } else {
          storeHalf(page + (i * 16 + inPage) * 2, load<f32>(fromK + i * 4));
          storeHalf(values + valueAt * 2, load<f32>(fromV + i * 4));
        }
      }
    }
  }
}

/** For finite halves only. Choosing between this loop and widenHalf in here slowed decode attention by a quarter. */
function widen(src: usize, out: usize, count: i32): void {
  for (let i = 0; i < count; i += 8, src += 16, out += 32) {
    v128.store(out, finiteHalfToFloat4(v128.load_ext<u16>(src)));
    v128.store(out, finiteHalfToFloat4(v128.load_ext<u16>(src, 8)), 16);
  }
}

/** Stores k or v as a half; an overflow or NaN makes all later reads use the loop that handles such halves. */
// @ts-ignore: decorator
@inline
function storeHalf(at: usize, value: f32): void {
  const half = floatToHalf(value);
  if ((half & 0x7c00) == 0x7c00) noteBadHalf();
  store<u16>(at, <u16>half);
}

// @ts-ignore: decorator
@inline
function masked(scores: v128, first: i32, from: v128, to: v128): v128 {
  const at = i32x4.add(i32x4.splat(first), i32x4(0, 1, 2, 3));
  const inside = v128.and(i32x4.ge_s(at, from), i32x4.lt_s(at, to));
  return v128.bitselect(scores, f32x4.splat(LOWEST), inside);
}

/** Turns 16 scores into weights, at `state`, and updates its maximum and sum; returns the factor for the earlier sums. */
// @ts-ignore: decorator
@inline
function weighScores(s0: v128, s1: v128, s2: v128, s3: v128, state: usize, from: i32, to: i32, scale: f32, cap: f32): f32 {
  const factor = f32x4.splat(scale);
  s0 = f32x4.mul(s0, factor);
  s1 = f32x4.mul(s1, factor);
  s2 = f32x4.mul(s2, factor);
  s3 = f32x4.mul(s3, factor);
  if (cap > 0) {
    const c = f32x4.splat(cap);
    s0 = f32x4.mul(tanhVector(f32x4.div(s0, c)), c);
    s1 = f32x4.mul(tanhVector(f32x4.div(s1, c)), c);
    s2 = f32x4.mul(tanhVector(f32x4.div(s2, c)), c);
    s3 = f32x4.mul(tanhVector(f32x4.div(s3, c)), c);
  }
  const lower = i32x4.splat(from);
  const upper = i32x4.splat(to);
  s0 = masked(s0, 0, lower, upper);
  s1 = masked(s1, 4, lower, upper);
  s2 = masked(s2, 8, lower, upper);
  s3 = masked(s3, 12, lower, upper);
  const oldMax = load<f32>(state);
  const newMax = max(oldMax, horizontalMax(f32x4.max(f32x4.max(s0, s1), f32x4.max(s2, s3))));
  const m = f32x4.splat(newMax);
  // Masked scores must have exactly zero weight; e^-87 is small, not zero.
  s0 = v128.and(expVector(f32x4.sub(s0, m)), f32x4.gt(s0, f32x4.splat(LOWEST)));
  s1 = v128.and(expVector(f32x4.sub(s1, m)), f32x4.gt(s1, f32x4.splat(LOWEST)));
  s2 = v128.and(expVector(f32x4.sub(s2, m)), f32x4.gt(s2, f32x4.splat(LOWEST)));
  s3 = v128.and(expVector(f32x4.sub(s3, m)), f32x4.gt(s3, f32x4.splat(LOWEST)));
  const decay: f32 = oldMax == LOWEST ? 0 : f32x4.extract_lane(expVector(f32x4.splat(oldMax - newMax)), 0);
  store<f32>(state, newMax);
  store<f32>(state, load<f32>(state, 4) * decay + horizontalSum(f32x4.add(f32x4.add(s0, s1), f32x4.add(s2, s3))), 4);
  v128.store(state, s0, 16);
  v128.store(state, s1, 32);
  v128.store(state, s2, 48);
  v128.store(state, s3, 64);
  return decay;
}

/** One query row with one widened page; `state` holds the running maximum and sum, `out` the running weighted values. */
function rowAndPage(q: usize, keys: usize, values: usize, out: usize, state: usize, headDim: i32, from: i32, to: i32, scale: f32, cap: f32): void {
  let s0 = f32x4.splat(0);
  let s1 = f32x4.splat(0);
  let s2 = f32x4.splat(0);
  let s3 = f32x4.splat(0);
  let key = keys;
  for (let d = 0; d < headDim; d++, key += 64) {
    const qd = v128.load_splat<f32>(q + (<usize>d << 2));
    s0 = fma(qd, v128.load(key), s0);
    s1 = fma(qd, v128.load(key, 16), s1);
    s2 = fma(qd, v128.load(key, 32), s2);
    s3 = fma(qd, v128.load(key, 48), s3);
  }
  const decay = weighScores(s0, s1, s2, s3, state, from, to, scale, cap);
  const p = state + 16;
  const rowBytes = <usize>headDim << 2;
  const decays = f32x4.splat(decay);
  // Only visible slots: others may hold values of a failed sequence, and zero times NaN is NaN.
  const firstWeight = <usize>from << 2;
  const endWeight = <usize>to << 2;
  const firstValue = values + <usize>from * rowBytes;
  let d: usize = 0;
  for (; d + 32 <= rowBytes; d += 32) {
    let a = f32x4.mul(v128.load(out + d), decays);
    let b = f32x4.mul(v128.load(out + d, 16), decays);
    let value = firstValue + d;
    for (let t = firstWeight; t < endWeight; t += 4, value += rowBytes) {
      const weight = v128.load_splat<f32>(p + t);
      a = fma(weight, v128.load(value), a);
      b = fma(weight, v128.load(value, 16), b);
    }
    v128.store(out + d, a);
    v128.store(out + d, b, 16);
  }
  for (; d < rowBytes; d += 16) {
    let a = f32x4.mul(v128.load(out + d), decays);
    let value = firstValue + d;
    for (let t = firstWeight; t < endWeight; t += 4, value += rowBytes) a = fma(v128.load_splat<f32>(p + t), v128.load(value), a);
    v128.store(out + d, a);
  }
}

/** Four query rows that see the same slots of a page; each is computed like rowAndPage. */
function fourRowsAndPage(q: usize, keys: usize, values: usize, out: usize, state: usize, headDim: i32, from: i32, to: i32, scale: f32, cap: f32, rowStride: usize, stateStride: usize): void {
  scoreFourRows(q, rowStride, keys, headDim, state + 16, stateStride);
  for (let i: usize = 0; i < 4; i++) {
    const at = state + i * stateStride;
    const decay = weighScores(v128.load(at, 16), v128.load(at, 32), v128.load(at, 48), v128.load(at, 64), at, from, to, scale, cap);
    store<f32>(at, decay, 8);
  }
  addFourRows(out, rowStride, values, headDim, state, stateStride, from, to);
}

/**
 * args: 2 base, 3 pageBytes, 4 layer offset, 5 kvHeads, 6 headDim, 7 q, 8 out, 9 heads, 10 sequences, 11 number of
 * sequences, 12 pageTables, 13 scale (f32), 14 window, 15 softcap (f32), 16 kind of pages; 17 base with layer, 18 pageBytes,
 * 19 kind of packed pages; 20 whether rows see later tokens, 21 sinks of heads or 0.
 * scratch: widened keys, widened values, then 80 bytes of state per row: max, sum, decay (fourRowsAndPage), -, 16 weights.
 */
export function attentionOp(op: usize, scratch: usize): void {
  const kvHeads = load<i32>(op, 20);
  const sequences = address(op, 40);
  const numSequences = load<i32>(op, 44);
  let next = takeChunk(op);
  let firstChunk = 0;
  for (let s = 0; s < numSequences; s++) {
    const sequence = sequences + (<usize>s << 4);
    const tiles = (load<i32>(sequence, 4) + TILE - 1) / TILE;
    const chunks = tiles * kvHeads;
    while (next < firstChunk + chunks) {
      const item = next - firstChunk;
      attendTile(op, sequence, item % kvHeads, (item / kvHeads) * TILE, scratch);
      next = takeChunk(op);
    }
    firstChunk += chunks;
  }
}

/** The slots of `page` that `position` sees: first (included) to last (excluded). */
// @ts-ignore: decorator
@inline
function firstSlot(position: i32, page: i32, window: i32): i32 {
  return window > 0 ? max(0, position - window + 1 - page * PAGE_TOKENS) : 0;
}
// @ts-ignore: decorator
@inline
function lastSlot(position: i32, page: i32): i32 { return min(PAGE_TOKENS, position - page * PAGE_TOKENS + 1); }

function seesAlike(lowest: i32, highest: i32, page: i32, window: i32): bool {
  return lastSlot(lowest, page) == lastSlot(highest, page) && firstSlot(lowest, page, window) == firstSlot(highest, page, window);
}

/** The factor of a row's values if its softmax has one more score, without a value. */
function withSink(state: usize, sink: f32): f32 {
  const largest = load<f32>(state);
  const top: f32 = sink > largest ? sink : largest;
  const scale = f32x4.extract_lane(expVector(f32x4.splat(largest - top)), 0);
  return scale / (load<f32>(state, 4) * scale + f32x4.extract_lane(expVector(f32x4.splat(sink - top)), 0));
}

function attendTile(op: usize, sequence: usize, kvHead: i32, firstToken: i32, scratch: usize): void {
  const base = address(op, 8) + address(op, 16);
  const pageBytes = address(op, 12);
  const kvHeads = load<i32>(op, 20);
  const headDim = load<i32>(op, 24);
  const heads = load<i32>(op, 36);
  const scale = load<f32>(op, 52);
  const window = load<i32>(op, 56);
  const cap = load<f32>(op, 60);
  const firstRow = load<i32>(sequence);
  const numRows = load<i32>(sequence, 4);
  const context = load<i32>(sequence, 8);
  // Without a causal mask, every row is at the end of the context.
  const step = load<i32>(op, 80) != 0 ? 0 : 1;
  const table = address(op, 48) + (<usize>load<i32>(sequence, 12) << 2);
  const group = heads / kvHeads;
  const tokens = min(TILE, numRows - firstToken);
  const q = address(op, 28);
  const out = address(op, 32);
  const rowBytes = <usize>headDim << 2;
  const pageFloats = headDim * PAGE_TOKENS;
  const isFloat = load<i32>(op, 64) == PAGES_F32;
  const hasBad = hasBadHalves();
  let keys = scratch;
  let values = scratch + (<usize>pageFloats << 2);
  const states = values + (<usize>pageFloats << 2);

  for (let i = 0; i < tokens * group; i++) {
    const row = <usize>((firstRow + firstToken + i / group) * heads + kvHead * group + (i % group));
    memory.fill(out + row * rowBytes, 0, rowBytes);
    store<f32>(states + <usize>i * 80, LOWEST);
    store<f32>(states + <usize>i * 80, 0, 4);
  }
  const allSinks = address(op, 84);
  const sinks = allSinks ? allSinks + (<usize>(kvHead * group) << 2) : 0;
  const lowest = step != 0 ? context - numRows + firstToken : context - 1;
  const highest = lowest + (tokens - 1) * step;
  const firstPage = window > 0 ? max(0, lowest - window + 1) >> 4 : 0;
  for (let page = firstPage; page <= highest >> 4; page++) {
    const id = load<i32>(table + (<usize>page << 2));
    const kPage = base + <usize>id * pageBytes;
    if (id < 0) {
      keys = scratch;
      values = scratch + (<usize>pageFloats << 2);
      widenPacked(address(op, 68) + <usize>~id * address(op, 72), load<i32>(op, 76), kvHead, headDim, keys, values);
    } else if (isFloat) {
      keys = kPage + (<usize>(kvHead * pageFloats) << 2);
      values = kPage + (<usize>((kvHeads + kvHead) * pageFloats) << 2);
    } else if (hasBad) {
      widenHalf(kPage + (<usize>(kvHead * pageFloats) << 1), keys, pageFloats);
      widenHalf(kPage + (<usize>((kvHeads + kvHead) * pageFloats) << 1), values, pageFloats);
    } else {
      widen(kPage + (<usize>(kvHead * pageFloats) << 1), keys, pageFloats);
      widen(kPage + (<usize>((kvHeads + kvHead) * pageFloats) << 1), values, pageFloats);
    }
    // Four rows at a time where Arm's 32 registers hold their sums: tokens that see the same slots, or heads of a token.
    const rowStride = SIGNED_DOT && tokens >= 4 && seesAlike(lowest, highest, page, window) ? <usize>heads * rowBytes : 0;
    for (let t = 0; t < tokens; t++) {
      const position = lowest + t * step;
      const to = lastSlot(position, page);
      const from = firstSlot(position, page, window);
      if (from >= to) continue;
      const isFour = rowStride != 0 && t + 4 <= tokens;
      for (let h = 0; h < group; h++) {
        const row = <usize>((firstRow + firstToken + t) * heads + kvHead * group + h) * rowBytes;
        const state = states + <usize>(t * group + h) * 80;
        if (isFour) fourRowsAndPage(q + row, keys, values, out + row, state, headDim, from, to, scale, cap, rowStride, <usize>group * 80);
        else if (SIGNED_DOT && h + 4 <= group) {
          fourRowsAndPage(q + row, keys, values, out + row, state, headDim, from, to, scale, cap, rowBytes, 80);
          h += 3;
        } else rowAndPage(q + row, keys, values, out + row, state, headDim, from, to, scale, cap);
      }
      if (isFour) t += 3;
    }
  }
  for (let i = 0; i < tokens * group; i++) {
    const row = out + <usize>((firstRow + firstToken + i / group) * heads + kvHead * group + (i % group)) * rowBytes;
    const state = states + <usize>i * 80;
    const factor = f32x4.splat(sinks ? withSink(state, load<f32>(sinks + (<usize>(i % group) << 2))) : <f32>1 / load<f32>(state, 4));
    for (let d: usize = 0; d < rowBytes; d += 16) v128.store(row + d, f32x4.mul(v128.load(row + d), factor));
  }
}
