import { address, takeChunk } from './control';
import { expVector, fma, roundToHalf4, tanhVector } from './vector-math';

/** Values per chunk of an element-wise operation: 16 kB, small enough to share, large enough to pay for the counter. */
const CHUNK: i32 = 4096;

/** args: 2 x, 3 weight, 4 out, 5 rows, 6 dim, 7 epsilon (f32). A chunk is eight rows. */
export function rmsNormOp(op: usize): void {
  const x = address(op, 8);
  const weight = address(op, 12);
  const out = address(op, 16);
  const rows = load<i32>(op, 20);
  const dim = load<i32>(op, 24);
  const epsilon = load<f32>(op, 28);
  for (let first = takeChunk(op) * 8; first < rows; first = takeChunk(op) * 8) {
    const end = min(rows, first + 8);
    for (let r = first; r < end; r++) {
      const from = x + <usize>r * (<usize>dim << 2);
      const to = out + <usize>r * (<usize>dim << 2);
      // Squares in f32, their sum in f64, like llama.cpp: the scale is then equal to the last bit.
      let sums = f64x2.splat(0);
      let c = 0;
      for (; c + 4 <= dim; c += 4) {
        const v = v128.load(from + (<usize>c << 2));
        const squares = f32x4.mul(v, v);
        sums = f64x2.add(sums, f64x2.promote_low_f32x4(squares));
        sums = f64x2.add(sums, f64x2.promote_low_f32x4(i8x16.shuffle(squares, squares, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0, 0)));
      }
      let sum: f64 = f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1);
      for (; c < dim; c++) {
        const v = load<f32>(from + (<usize>c << 2));
        sum += <f64>(v * v);
      }
      const mean = <f32>(sum / <f64>dim);
      // Overflowing squares would scale the whole row to a plausible zero.
      const scale: f32 = mean == Infinity ? NaN : <f32>1 / sqrt<f32>(mean + epsilon);
      const factor = f32x4.splat(scale);
      for (c = 0; c + 4 <= dim; c += 4) {
        const at = <usize>c << 2;
        v128.store(to + at, f32x4.mul(f32x4.mul(v128.load(from + at), factor), v128.load(weight + at)));
      }
      for (; c < dim; c++) {
        const at = <usize>c << 2;
        store<f32>(to + at, load<f32>(from + at) * scale * load<f32>(weight + at));
      }
    }
  }
}

/** args: 2 x, 3 weight, 4 bias, 5 out, 6 rows, 7 dim, 8 epsilon (f32). A chunk is eight rows. */
export function layerNormOp(op: usize): void {
  const x = address(op, 8);
  const weight = address(op, 12);
  const bias = address(op, 16);
  const out = address(op, 20);
  const rows = load<i32>(op, 24);
  const dim = load<i32>(op, 28);
  const epsilon = <f64>load<f32>(op, 32);
  for (let first = takeChunk(op) * 8; first < rows; first = takeChunk(op) * 8) {
    const end = min(rows, first + 8);
    for (let r = first; r < end; r++) {
      const from = x + <usize>r * (<usize>dim << 2);
      const to = out + <usize>r * (<usize>dim << 2);
      const mean = sumOf(from, dim, 0, false) / <f64>dim;
      const variance = sumOf(from, dim, mean, true) / <f64>dim;
      // Overflowing sums would scale the whole row to a plausible zero.
      const scale: f32 = variance <= 3.4e38 ? <f32>(1 / sqrt<f64>(variance + epsilon)) : NaN;
      const middle = <f32>mean;
      let c = 0;
      for (; c + 4 <= dim; c += 4) {
        const at = <usize>c << 2;
        const centered = f32x4.mul(f32x4.sub(v128.load(from + at), f32x4.splat(middle)), f32x4.splat(scale));
        v128.store(to + at, f32x4.add(f32x4.mul(centered, v128.load(weight + at)), v128.load(bias + at)));
      }
      for (; c < dim; c++) {
        const at = <usize>c << 2;
        store<f32>(to + at, (load<f32>(from + at) - middle) * scale * load<f32>(weight + at) + load<f32>(bias + at));
      }
    }
  }
}

/** The sum of x - shift in f64, or of its squares. */
export function sumOf(x: usize, dim: i32, shift: f64, isSquared: bool): f64 {
  const shifts = f64x2.splat(shift);
  let sums = f64x2.splat(0);
  let c = 0;
  for (; c + 2 <= dim; c += 2) {
    const v = f64x2.sub(f64x2.promote_low_f32x4(v128.load64_zero(x + (<usize>c << 2))), shifts);
    sums = f64x2.add(sums, isSquared ? f64x2.mul(v, v) : v);
  }
  let sum: f64 = f64x2.extract_lane(sums, 0) + f64x2.extract_lane(sums, 1);
  if (c < dim) {
    const v = <f64>load<f32>(x + (<usize>c << 2)) - shift;
    sum += isSquared ? v * v : v;
  }
  return sum;
}

/** args: 2 x, 3 cosSin, 4 tokens, 5 heads, 6 headDim, 7 rotaryDim, 8 halves. A chunk is a token. */
export function ropeOp(op: usize): void {
  const x = address(op, 8);
  const cosSin = address(op, 12);
  const tokens = load<i32>(op, 16);
  const heads = load<i32>(op, 20);
  const headDim = load<i32>(op, 24);
  const rotary = load<i32>(op, 28);
  const halves = load<i32>(op, 32) != 0;
  const pairs = rotary >> 1;
  const step: usize = halves ? 4 : 8;
  const partner: usize = halves ? <usize>pairs << 2 : 4;
  for (let t = takeChunk(op); t < tokens; t = takeChunk(op)) {
    const angles = cosSin + <usize>t * (<usize>rotary << 2);
    for (let h = 0; h < heads; h++) {
      let p = x + <usize>(t * heads + h) * (<usize>headDim << 2);
      for (let i = 0; i < pairs; i++, p += step) {
        const cos = load<f32>(angles + (<usize>i << 3));
        const sin = load<f32>(angles + (<usize>i << 3), 4);
        const a = load<f32>(p);
        const b = load<f32>(p + partner);
        store<f32>(p, a * cos - b * sin);
        store<f32>(p + partner, a * sin + b * cos);
      }
    }
  }
}

// @ts-ignore: decorator
@inline
function silu(x: v128): v128 {
  return f32x4.div(x, f32x4.add(f32x4.splat(1), expVector(f32x4.neg(x))));
}

// @ts-ignore: decorator
@inline
function smoothGelu(x: v128): v128 {
  const inner = f32x4.mul(f32x4.mul(f32x4.splat(0.79788456080286535588), x), fma(f32x4.mul(x, x), f32x4.splat(0.044715), f32x4.splat(1)));
  return f32x4.mul(f32x4.mul(f32x4.splat(0.5), x), f32x4.add(f32x4.splat(1), tanhVector(inner)));
}

// @ts-ignore: decorator
@inline
function gelu(x: v128): v128 {
  const inside = f32x4.lt(f32x4.abs(x), f32x4.splat(10));
  const outside = f32x4.max(x, f32x4.splat(0));
  return v128.bitselect(roundToHalf4(smoothGelu(roundToHalf4(x))), outside, inside);
}

/**
 * x/2 * (1 + erf(x/√2)): half of erfc(|x|/√2) by formula 7.1.26 of Abramowitz and Stegun, off by at most 7.5e-8; negative
 * values use only that term, so that small results keep their digits.
 */
// @ts-ignore: decorator
@inline
function erfGelu(x: v128): v128 {
  const z = f32x4.mul(f32x4.abs(x), f32x4.splat(0.70710678118654752440));
  const t = f32x4.div(f32x4.splat(1), fma(f32x4.splat(0.3275911), z, f32x4.splat(1)));
  let p = fma(f32x4.splat(1.061405429), t, f32x4.splat(-1.453152027));
  p = fma(p, t, f32x4.splat(1.421413741));
  p = fma(p, t, f32x4.splat(-0.284496736));
  p = f32x4.mul(fma(p, t, f32x4.splat(0.254829592)), t);
  const half = f32x4.mul(f32x4.mul(f32x4.splat(0.5), p), expVector(f32x4.neg(f32x4.mul(z, z))));
  const tail = f32x4.mul(x, half);
  return v128.bitselect(f32x4.sub(x, tail), tail, f32x4.gt(x, f32x4.splat(0)));
}

/** The gated unit of gpt-oss. */
// @ts-ignore: decorator
@inline
function clampedSwiglu(x: v128, y: v128): v128 {
  const gate = f32x4.min(x, f32x4.splat(7));
  const up = f32x4.max(f32x4.min(y, f32x4.splat(7)), f32x4.splat(-7));
  const sigmoid = f32x4.add(f32x4.splat(1), expVector(f32x4.mul(gate, f32x4.splat(-1.702))));
  return f32x4.mul(f32x4.div(gate, sigmoid), f32x4.add(up, f32x4.splat(1)));
}

const ADD: i32 = 0;
const GATE_SILU: i32 = 1;
const GATE_GELU: i32 = 2;
const SOFTCAP: i32 = 3;
const SCALE: i32 = 4;
const ERF_GELU: i32 = 5;
const TANH_GELU: i32 = 6;
const MULTIPLY: i32 = 7;
const GATE_CLAMPED: i32 = 8;
const SIGMOID_GATE: i32 = 9;

// @ts-ignore: decorator
@inline
function apply(kind: i32, x: v128, y: v128, factor: f32): v128 {
  if (kind == ADD) return f32x4.add(x, y);
  if (kind == GATE_SILU) return f32x4.mul(silu(x), y);
  if (kind == GATE_GELU) return f32x4.mul(gelu(x), y);
  if (kind == ERF_GELU) return erfGelu(x);
  if (kind == TANH_GELU) return gelu(x);
  if (kind == MULTIPLY) return f32x4.mul(x, y);
  if (kind == GATE_CLAMPED) return clampedSwiglu(x, y);
  if (kind == SIGMOID_GATE) return f32x4.div(y, f32x4.add(f32x4.splat(1), expVector(f32x4.neg(x))));
  if (kind == SCALE) return f32x4.mul(x, f32x4.splat(factor));
  return f32x4.mul(tanhVector(f32x4.div(x, f32x4.splat(factor))), f32x4.splat(factor));
}

/** args: 2 kind, 3 x, 4 y, 5 out, 6 count, 7 factor (f32). */
export function mapOp(op: usize, scratch: usize): void {
  const kind = load<i32>(op, 8);
  const x = address(op, 12);
  const y = address(op, 16);
  const out = address(op, 20);
  const count = load<i32>(op, 24);
  const factor = load<f32>(op, 28);
  for (let first = takeChunk(op) * CHUNK; first < count; first = takeChunk(op) * CHUNK) {
    const end = min(count, first + CHUNK);
    let i = first;
    for (; i + 4 <= end; i += 4) {
      const at = <usize>i << 2;
      v128.store(out + at, apply(kind, v128.load(x + at), v128.load(y + at), factor));
    }
    if (i < end) {
      const at = <usize>i << 2;
      const bytes = <usize>(end - i) << 2;
      memory.copy(scratch, x + at, bytes);
      memory.copy(scratch + 16, y + at, bytes);
      v128.store(scratch, apply(kind, v128.load(scratch), v128.load(scratch, 16), factor));
      memory.copy(out + at, scratch, bytes);
    }
  }
}

/** args: 2 x, 3 rows, 4 out, 5 count, 6 dim. A chunk is a row. */
export function copyRowsOp(op: usize): void {
  const x = address(op, 8);
  const rows = address(op, 12);
  const out = address(op, 16);
  const count = load<i32>(op, 20);
  const bytes = <usize>load<i32>(op, 24) << 2;
  for (let i = takeChunk(op); i < count; i = takeChunk(op)) {
    memory.copy(out + <usize>i * bytes, x + <usize>load<i32>(rows + (<usize>i << 2)) * bytes, bytes);
  }
}

/** args: 2 x, 3 out, 4 outer, 5 inner, 6 width, 7-8 strides of x, 9-10 of out, in values. A chunk is an outer block. */
export function copyBlocksOp(op: usize): void {
  const outer = load<i32>(op, 16);
  const inner = load<i32>(op, 20);
  const bytes = <usize>load<i32>(op, 24) << 2;
  for (let o = takeChunk(op); o < outer; o = takeChunk(op)) {
    const x = address(op, 8) + ((<usize>o * <usize>load<i32>(op, 28)) << 2);
    const out = address(op, 12) + ((<usize>o * <usize>load<i32>(op, 36)) << 2);
    for (let i = 0; i < inner; i++) {
      memory.copy(out + ((<usize>i * <usize>load<i32>(op, 40)) << 2), x + ((<usize>i * <usize>load<i32>(op, 32)) << 2), bytes);
    }
  }
}
