// Operations with a state from token to token. The rows of a sequence are computed in order by one thread, for a part of the
// channels or one head, so that a split into steps or batches changes no bit.
import { address, takeChunk } from './control';
import { expVector, fma, horizontalSum } from './vector-math';

/** Channels of a chunk, as sums and as inputs of past tokens in the scratch. */
const CHANNELS: i32 = 64;
const CHANNEL_BYTES: usize = 256;

// args of both: 2 states, 3 bytes of a state, 4 sequences, 5 state table, 6 number of sequences.
// @ts-ignore: decorator
@inline
function sequenceAt(op: usize, s: i32): usize { return address(op, 16) + (<usize>s << 4); }
// @ts-ignore: decorator
@inline
function stateAt(op: usize, s: i32, word: usize): usize {
  const index = load<u32>(address(op, 20) + <usize>s * 12 + word);
  return address(op, 8) + <usize>index * address(op, 12);
}
// @ts-ignore: decorator
@inline
function copyAfter(op: usize, s: i32): i32 { return load<i32>(address(op, 20) + <usize>s * 12, 4); }

/** The rows of past tokens, oldest first, from the scratch to a state. */
function writePast(to: usize, rowBytes: usize, past: usize, oldest: i32, numPast: i32, bytes: usize): void {
  for (let j = 0; j < numPast; j++) {
    memory.copy(to + <usize>j * rowBytes, past + <usize>((oldest + j) % numPast) * CHANNEL_BYTES, bytes);
  }
}

/** args: 7 x, 8 weight, 9 bias or 0, 10 out, 11 channels, 12 width, 13 silu. A chunk is CHANNELS channels. */
export function causalConvOp(op: usize, scratch: usize): void {
  const bias = address(op, 36);
  const channels = load<i32>(op, 44);
  const numPast = load<i32>(op, 48) - 1;
  const rowBytes = <usize>channels << 2;
  const sums = scratch;
  const past = scratch + CHANNEL_BYTES;
  for (let first = takeChunk(op) * CHANNELS; first < channels; first = takeChunk(op) * CHANNELS) {
    const bytes = <usize>min(CHANNELS, channels - first) << 2;
    const from = <usize>first << 2;
    const weight = address(op, 32) + from;
    for (let s = 0; s < load<i32>(op, 24); s++) {
      const sequence = sequenceAt(op, s);
      const rows = load<i32>(sequence, 4);
      const state = stateAt(op, s, 0) + from;
      memory.fill(past, 0, <usize>numPast * CHANNEL_BYTES);
      if (rows != load<i32>(sequence, 8)) {
        for (let j = 0; j < numPast; j++) memory.copy(past + <usize>j * CHANNEL_BYTES, state + <usize>j * rowBytes, bytes);
      }
      let oldest = 0;
      for (let i = 0; i < rows; i++) {
        const at = <usize>(load<i32>(sequence) + i) * rowBytes + from;
        convolve(op, at, weight, bias ? bias + from : 0, sums, past, oldest, numPast, rowBytes, bytes);
        memory.copy(past + <usize>oldest * CHANNEL_BYTES, address(op, 28) + at, bytes);
        oldest = (oldest + 1) % numPast;
        memory.copy(address(op, 40) + at, sums, bytes);
        if (i + 1 == copyAfter(op, s)) writePast(stateAt(op, s, 8) + from, rowBytes, past, oldest, numPast, bytes);
      }
      writePast(state, rowBytes, past, oldest, numPast, bytes);
    }
  }
}

/** The results of one row in `sums`. Lanes beyond the last channel hold anything. */
function convolve(op: usize, at: usize, weight: usize, bias: usize, sums: usize, past: usize, oldest: i32, numPast: i32, rowBytes: usize, bytes: usize): void {
  const isSilu = load<i32>(op, 52) != 0;
  const x = address(op, 28) + at;
  for (let k: usize = 0; k < bytes; k += 16) {
    let sum = bias ? v128.load(bias + k) : f32x4.splat(0);
    for (let j = 0; j < numPast; j++) {
      sum = fma(v128.load(weight + <usize>j * rowBytes + k), v128.load(past + <usize>((oldest + j) % numPast) * CHANNEL_BYTES + k), sum);
    }
    sum = fma(v128.load(weight + <usize>numPast * rowBytes + k), v128.load(x + k), sum);
    if (isSilu) sum = f32x4.div(sum, f32x4.add(f32x4.splat(1), expVector(f32x4.neg(sum))));
    v128.store(sums + k, sum);
  }
}

// @ts-ignore: decorator
@inline
function softplus(x: f32): f32 { return x > 20 ? x : <f32>Math.log1p(Math.exp(<f64>x)); }

/** args: 7 x, 8 dt, 9 dt bias, 10 a, 11 d, 12 b, 13 c, 14 out, 15 heads, 16 headDim, 17 groups, 18 stateDim. A chunk is a head. */
export function selectiveScanOp(op: usize): void {
  const heads = load<i32>(op, 60);
  const headDim = load<i32>(op, 64);
  const groups = load<i32>(op, 68);
  const stateBytes = <usize>load<i32>(op, 72) << 2;
  const part = <usize>headDim * stateBytes;
  for (let h = takeChunk(op); h < heads; h = takeChunk(op)) {
    const word = <usize>h << 2;
    const a = load<f32>(address(op, 40) + word);
    const d = load<f32>(address(op, 44) + word);
    const bias = load<f32>(address(op, 36) + word);
    const group = h / (heads / groups);
    for (let s = 0; s < load<i32>(op, 24); s++) {
      const sequence = sequenceAt(op, s);
      const rows = load<i32>(sequence, 4);
      const state = stateAt(op, s, 0) + <usize>h * part;
      if (rows == load<i32>(sequence, 8)) memory.fill(state, 0, part);
      for (let i = 0; i < rows; i++) {
        const t = load<i32>(sequence) + i;
        const at = (<usize>(t * heads + h) * <usize>headDim) << 2;
        const from = <usize>(t * groups + group) * stateBytes;
        const x = address(op, 28) + at;
        const b = address(op, 48) + from;
        const read = address(op, 52) + from;
        const out = address(op, 56) + at;
        const step = softplus(load<f32>(address(op, 32) + (<usize>(t * heads + h) << 2)) + bias);
        const decay = <f32>Math.exp(<f64>(step * a));
        for (let k = 0; k < headDim; k++) {
          const value = load<f32>(x + (<usize>k << 2));
          const sum = scanRow(state + <usize>k * stateBytes, stateBytes, decay, value * step, b, read);
          store<f32>(out + (<usize>k << 2), sum + d * value);
        }
        if (i + 1 == copyAfter(op, s)) memory.copy(stateAt(op, s, 8) + <usize>h * part, state, part);
      }
    }
  }
}

/** Updates one row of a state; returns its product with `read`. */
// @ts-ignore: decorator
@inline
function scanRow(row: usize, bytes: usize, decay: f32, input: f32, b: usize, read: usize): f32 {
  let sum = f32x4.splat(0);
  for (let n: usize = 0; n < bytes; n += 16) {
    const next = fma(f32x4.splat(input), v128.load(b + n), f32x4.mul(v128.load(row + n), f32x4.splat(decay)));
    v128.store(row + n, next);
    sum = fma(next, v128.load(read + n), sum);
  }
  return horizontalSum(sum);
}

/** 1 / the length of f32[bytes / 4], at least epsilon. */
function inverseLength(at: usize, bytes: usize, epsilon: f32): f32 {
  let sum = f32x4.splat(0);
  for (let n: usize = 0; n < bytes; n += 16) sum = fma(v128.load(at + n), v128.load(at + n), sum);
  return <f32>1 / max(sqrt(horizontalSum(sum)), epsilon);
}

/**
 * args: 7 q, 8 k, 9 v, 10 dt, 11 dt bias, 12 a, 13 beta, 14 out, 15 heads, 16 key heads, 17 keyDim, 18 valueDim, 19 every, 20 epsilon
 * (f32). A chunk is a head.
 */
export function deltaScanOp(op: usize): void {
  const heads = load<i32>(op, 60);
  const keyHeads = load<i32>(op, 64);
  const keyBytes = <usize>load<i32>(op, 68) << 2;
  const valueDim = load<i32>(op, 72);
  const epsilon = load<f32>(op, 80);
  const part = <usize>valueDim * keyBytes;
  const scale = <f32>1 / sqrt(<f32>load<i32>(op, 68));
  for (let h = takeChunk(op); h < heads; h = takeChunk(op)) {
    const word = <usize>h << 2;
    const a = load<f32>(address(op, 48) + word);
    const bias = load<f32>(address(op, 44) + word);
    const keyHead = load<i32>(op, 76) ? h % keyHeads : h / (heads / keyHeads);
    for (let s = 0; s < load<i32>(op, 24); s++) {
      const sequence = sequenceAt(op, s);
      const rows = load<i32>(sequence, 4);
      const state = stateAt(op, s, 0) + <usize>h * part;
      if (rows == load<i32>(sequence, 8)) memory.fill(state, 0, part);
      for (let i = 0; i < rows; i++) {
        const t = load<i32>(sequence) + i;
        const from = <usize>(t * keyHeads + keyHead) * keyBytes;
        const q = address(op, 28) + from;
        const k = address(op, 32) + from;
        const at = (<usize>(t * heads + h) * <usize>valueDim) << 2;
        const v = address(op, 36) + at;
        const out = address(op, 56) + at;
        const ofHead = <usize>(t * heads + h) << 2;
        const decay = <f32>Math.exp(<f64>(softplus(load<f32>(address(op, 40) + ofHead) + bias) * a));
        const strength = <f32>(1 / (1 + Math.exp(-<f64>load<f32>(address(op, 52) + ofHead))));
        const kScale = inverseLength(k, keyBytes, epsilon);
        const qScale = inverseLength(q, keyBytes, epsilon) * scale;
        for (let j = 0; j < valueDim; j++) {
          const value = load<f32>(v + (<usize>j << 2));
          store<f32>(out + (<usize>j << 2), deltaRow(state + <usize>j * keyBytes, keyBytes, k, q, decay, strength, kScale, value) * qScale);
        }
        if (i + 1 == copyAfter(op, s)) memory.copy(stateAt(op, s, 8) + <usize>h * part, state, part);
      }
    }
  }
}

/** Updates one row of a state; returns its product with `q`. */
// @ts-ignore: decorator
@inline
function deltaRow(row: usize, bytes: usize, k: usize, q: usize, decay: f32, strength: f32, kScale: f32, value: f32): f32 {
  let sum = f32x4.splat(0);
  for (let n: usize = 0; n < bytes; n += 16) {
    const next = f32x4.mul(v128.load(row + n), f32x4.splat(decay));
    v128.store(row + n, next);
    sum = fma(next, v128.load(k + n), sum);
  }
  const update = f32x4.splat((value - horizontalSum(sum) * kScale) * strength * kScale);
  sum = f32x4.splat(0);
  for (let n: usize = 0; n < bytes; n += 16) {
    const next = fma(update, v128.load(k + n), v128.load(row + n));
    v128.store(row + n, next);
    sum = fma(next, v128.load(q + n), sum);
  }
  return horizontalSum(sum);
}
