// Mixtures of experts: every token chooses a few of the stacked matrices. Rows are sorted by expert, so that the weights of an
// expert are read once for all its rows.
//
// A pair is a token and one of its choices: token * used + choice. The plan has, as i32:
//   [0] experts with rows; from [4] on, for each: expert, first sorted row, number of rows, first rounded row
// and for each pair: sorted row, first rounded row of its tile, width of the tile, lane in the tile.
import { address, takeChunk } from './control';
import { LAYOUT_BF16, groupBytes } from './layouts';
import { multiplyGroups } from './matmul';
import { activationStride, roundToken } from './round-activations';
import { expVector, fma } from './vector-math';

const SOFTMAX: i32 = 0;
const SIGMOID: i32 = 1;
const CHOSEN_SOFTMAX: i32 = 2;
const ENTRY_BYTES: usize = 16;
const TILE: i32 = 4;
/** The smallest normal half: as in llama.cpp, a smaller sum of weights does not divide. */
const MIN_SUM: f64 = 6.103515625e-5;
/** Rounded activations of one pass, sized to stay in the L1 cache with the weights. */
const PASS_BYTES: i32 = 48 << 10;

function exp(x: f32): f32 { return f32x4.extract_lane(expVector(f32x4.splat(x)), 0); }

// @ts-ignore: decorator
@inline
function floatAt(base: usize, i: i32): f32 { return load<f32>(base + (<usize>i << 2)); }

/** Marks the experts outside the best groups, by the sum of the two best ranks of each. `sums`: f32 per group. */
function maskGroups(rank: usize, experts: i32, groups: i32, used: i32, taken: usize, sums: usize): void {
  const size = experts / groups;
  for (let g = 0; g < groups; g++) {
    let first: f32 = -Infinity;
    let second: f32 = -Infinity;
    for (let e = g * size; e < (g + 1) * size; e++) {
      const value = floatAt(rank, e);
      if (value > first) {
        second = first;
        first = value;
      } else if (value > second) second = value;
    }
    store<f32>(sums + (<usize>g << 2), size > 1 ? first + second : first);
  }
  memory.fill(taken, 1, experts);
  for (let i = 0; i < used; i++) {
    let pick = -1;
    for (let g = 0; g < groups; g++) {
      if (load<u8>(taken + g * size) && (pick < 0 || floatAt(sums, g) > floatAt(sums, pick))) pick = g;
    }
    memory.fill(taken + pick * size, 0, size);
  }
}

/** f32[count] at `at` become their exponentials relative to the largest; returns the sum. */
function exponentials(at: usize, count: i32): f64 {
  let largest: f32 = -Infinity;
  for (let i = 0; i < count; i++) if (floatAt(at, i) > largest) largest = floatAt(at, i);
  let sum: f64 = 0;
  for (let i = 0; i < count; i++) {
    const power = exp(floatAt(at, i) - largest);
    store<f32>(at + (<usize>i << 2), power);
    sum += <f64>power;
  }
  return sum;
}

function divide(at: usize, count: i32, by: f64): void {
  for (let i = 0; i < count; i++) store<f32>(at + (<usize>i << 2), <f32>(<f64>floatAt(at, i) / by));
}

/**
 * args: 2 logits, 3 experts, 4 used, 5 kind of scores, 6 normalize, 7 scale (f32), 8 bias of the choice or 0, 9 groups,
 * 10 groups used, 11 ids, 12 weights, 13 tokens, 14 scales of experts or 0. A chunk is a token.
 */
export function routeOp(op: usize, scratch: usize): void {
  const experts = load<i32>(op, 12);
  const used = load<i32>(op, 16);
  const kind = load<i32>(op, 20);
  const bias = address(op, 32);
  const groups = load<i32>(op, 36);
  const tokens = load<i32>(op, 52);
  const scales = address(op, 56);
  const bytes = <usize>experts << 2;
  const score = scratch;
  const rank = score + bytes;
  const sums = rank + bytes;
  const taken = sums + bytes;
  for (let t = takeChunk(op); t < tokens; t = takeChunk(op)) {
    const logits = address(op, 8) + <usize>t * bytes;
    const ids = address(op, 44) + (<usize>(t * used) << 2);
    const weights = address(op, 48) + (<usize>(t * used) << 2);
    memory.copy(score, logits, bytes);
    if (kind == SIGMOID) for (let e = 0; e < experts; e++) store<f32>(score + (<usize>e << 2), <f32>1 / (<f32>1 + exp(-floatAt(logits, e))));
    if (kind == SOFTMAX) divide(score, experts, exponentials(score, experts));
    // Without a bias or sums of groups, the order of softmax scores is that of the logits, which packs compute with fewer roundings.
    memory.copy(rank, kind == SOFTMAX && !bias && groups == 1 ? logits : score, bytes);
    if (bias) for (let e = 0; e < experts; e++) store<f32>(rank + (<usize>e << 2), floatAt(rank, e) + floatAt(bias, e));
    memory.fill(taken, 0, experts);
    if (groups > 1) maskGroups(rank, experts, groups, load<i32>(op, 40), taken, sums);
    for (let i = 0; i < used; i++) {
      let best = -1;
      for (let e = 0; e < experts; e++) if (!load<u8>(taken + e) && (best < 0 || floatAt(rank, e) > floatAt(rank, best))) best = e;
      store<u8>(taken + best, 1);
      store<i32>(ids + (<usize>i << 2), best);
      store<f32>(weights + (<usize>i << 2), floatAt(score, best));
    }
    if (kind == CHOSEN_SOFTMAX) divide(weights, used, exponentials(weights, used));
    if (load<i32>(op, 24)) {
      let sum: f64 = 0;
      for (let i = 0; i < used; i++) sum += <f64>floatAt(weights, i);
      divide(weights, used, sum < MIN_SUM ? MIN_SUM : sum);
    }
    for (let i = 0; i < used; i++) {
      let weight = floatAt(weights, i) * load<f32>(op, 28);
      if (scales) weight *= floatAt(scales, load<i32>(ids + (<usize>i << 2)));
      store<f32>(weights + (<usize>i << 2), weight);
    }
  }
}

// @ts-ignore: decorator
@inline
function widthOf(count: i32): i32 { return count == 1 ? 1 : TILE; }

/** args: 2 ids, 3 experts, 4 pairs, 5 plan, 6 places of pairs. One thread sorts. */
export function planExpertsOp(op: usize, scratch: usize): void {
  if (takeChunk(op) != 0) return;
  const ids = address(op, 8);
  const experts = load<i32>(op, 12);
  const pairs = load<i32>(op, 16);
  const plan = address(op, 20);
  const places = address(op, 24);
  // i32[4] per expert: number of rows, first sorted row, first rounded row, rows placed so far
  memory.fill(scratch, 0, <usize>experts * ENTRY_BYTES);
  for (let i = 0; i < pairs; i++) {
    const counter = scratch + <usize>load<i32>(ids + (<usize>i << 2)) * ENTRY_BYTES;
    store<i32>(counter, load<i32>(counter) + 1);
  }
  let active = 0;
  let rows = 0;
  let rounded = 0;
  for (let e = 0; e < experts; e++) {
    const own = scratch + <usize>e * ENTRY_BYTES;
    const count = load<i32>(own);
    if (count == 0) continue;
    store<i32>(own, rows, 4);
    store<i32>(own, rounded, 8);
    const entry = plan + ENTRY_BYTES + <usize>active * ENTRY_BYTES;
    store<i32>(entry, e);
    store<i32>(entry, rows, 4);
    store<i32>(entry, count, 8);
    store<i32>(entry, rounded, 12);
    active++;
    rows += count;
    const width = widthOf(count);
    rounded += ((count + width - 1) / width) * width;
  }
  store<i32>(plan, active);
  for (let i = 0; i < pairs; i++) {
    const own = scratch + <usize>load<i32>(ids + (<usize>i << 2)) * ENTRY_BYTES;
    const n = load<i32>(own, 12);
    store<i32>(own, n + 1, 12);
    const width = widthOf(load<i32>(own));
    const place = places + <usize>i * ENTRY_BYTES;
    store<i32>(place, load<i32>(own, 4) + n);
    store<i32>(place, load<i32>(own, 8) + (n / width) * width, 4);
    store<i32>(place, width, 8);
    store<i32>(place, n % width, 12);
  }
}

/**
 * args: 2 x, 3 target, 4 rounding or -1, 5 cols, 6 choices per token, 7 places of pairs, 8 whether x has a row for each sorted
 * row instead of one for each token, 9 tokens. A chunk is a token.
 */
export function roundExpertsOp(op: usize, scratch: usize): void {
  const x = address(op, 8);
  const target = address(op, 12);
  const kind = load<i32>(op, 16);
  const cols = load<i32>(op, 20);
  const used = load<i32>(op, 24);
  const isSorted = load<i32>(op, 32) != 0;
  const tokens = load<i32>(op, 36);
  const floatBytes = <usize>cols << 2;
  const rowBytes = kind < 0 ? floatBytes : activationStride(kind, cols, 1);
  for (let t = takeChunk(op); t < tokens; t = takeChunk(op)) {
    for (let pair = t * used; pair < (t + 1) * used; pair++) {
      const place = address(op, 28) + <usize>pair * ENTRY_BYTES;
      const row = x + <usize>(isSorted ? load<i32>(place) : t) * floatBytes;
      const tile = target + <usize>load<i32>(place, 4) * rowBytes;
      const lane = load<i32>(place, 12);
      if (kind < 0) memory.copy(tile + <usize>lane * floatBytes, row, floatBytes);
      else if (kind == 6) roundToken(kind, row, cols, tile + <usize>lane * floatBytes, 1, 0, scratch);
      else roundToken(kind, row, cols, tile, load<i32>(place, 8), lane, scratch);
    }
  }
}

/**
 * args: 2 weights, 3 layout, 4 rows of an expert, 5 cols, 6 activations, 7 their rounding, 8 tokens, 9 plan, 10 out, 11 bias,
 * 12 whether all rows are the same token, 13 groups per chunk. A chunk is some row groups of an expert.
 */
export function expertsOp(op: usize, scratch: usize): void {
  const layout = load<i32>(op, 12);
  const rows = load<i32>(op, 16);
  const cols = load<i32>(op, 20);
  const kind = load<i32>(op, 28);
  const plan = address(op, 36);
  const bias = address(op, 44);
  const isShared = load<i32>(op, 48) != 0;
  const groupsPerChunk = load<i32>(op, 52);
  const groups = rows >> 2;
  const chunks = (groups + groupsPerChunk - 1) / groupsPerChunk;
  const total = load<i32>(plan) * chunks;
  const rowBytes = layout <= LAYOUT_BF16 ? <usize>cols << 2 : activationStride(kind, cols, 1);
  const expertBytes = <usize>groups * groupBytes(layout, cols);
  const tilesPerPass = max(1, PASS_BYTES / <i32>(rowBytes * TILE));
  for (let c = takeChunk(op); c < total; c = takeChunk(op)) {
    const entry = plan + ENTRY_BYTES + <usize>(c / chunks) * ENTRY_BYTES;
    const expert = <usize>load<i32>(entry);
    const count = load<i32>(entry, 8);
    const x = address(op, 24) + (isShared ? 0 : <usize>load<i32>(entry, 12) * rowBytes);
    const out = address(op, 40) + <usize>load<i32>(entry, 4) * (<usize>rows << 2);
    const first = (c % chunks) * groupsPerChunk;
    multiplyGroups(address(op, 8) + expert * expertBytes, layout, rows, cols, x, kind, count, widthOf(count), out, bias ? bias + expert * (<usize>rows << 2) : 0, false, first, min(groups, first + groupsPerChunk), tilesPerPass, scratch);
  }
}

/**
 * out[token] += the sum of weight * row over its choices, in their order. args: 2 rows, 3 places of pairs, 4 weights, 5 choices per
 * token, 6 dim, 7 out, 8 tokens. A chunk is a token; dim is a multiple of four.
 */
export function combineOp(op: usize): void {
  const rows = address(op, 8);
  const used = load<i32>(op, 20);
  const bytes = <usize>load<i32>(op, 24) << 2;
  const tokens = load<i32>(op, 32);
  for (let t = takeChunk(op); t < tokens; t = takeChunk(op)) {
    const places = address(op, 12) + <usize>(t * used) * ENTRY_BYTES;
    const weights = address(op, 16) + (<usize>(t * used) << 2);
    const out = address(op, 28) + <usize>t * bytes;
    for (let d: usize = 0; d < bytes; d += 16) {
      let sum = f32x4.splat(0);
      for (let i = 0; i < used; i++) {
        const row = rows + <usize>load<i32>(places + <usize>i * ENTRY_BYTES) * bytes;
        sum = fma(v128.load_splat<f32>(weights + (<usize>i << 2)), v128.load(row + d), sum);
      }
      v128.store(out + d, f32x4.add(v128.load(out + d), sum));
    }
  }
}
