// The sums of attention for four query rows at a time: each load of keys or values serves four rows, and sixteen sums stay
// in registers. Every sum has the order of rowAndPage (attention.ts), so that both give the same bits.
import { fma } from './vector-math';

/** Scores of 16 slots for rows at `q`, `q` + `rowStride` …: f32[16] at `scores`, `scores` + `scoreStride` … */
export function scoreFourRows(q: usize, rowStride: usize, keys: usize, headDim: i32, scores: usize, scoreStride: usize): void {
  let p = q + rowStride;
  let r = p + rowStride;
  let s = r + rowStride;
  let s00 = f32x4.splat(0);
  let s01 = f32x4.splat(0);
  let s02 = f32x4.splat(0);
  let s03 = f32x4.splat(0);
  let s10 = f32x4.splat(0);
  let s11 = f32x4.splat(0);
  let s12 = f32x4.splat(0);
  let s13 = f32x4.splat(0);
  let s20 = f32x4.splat(0);
  let s21 = f32x4.splat(0);
  let s22 = f32x4.splat(0);
  let s23 = f32x4.splat(0);
  let s30 = f32x4.splat(0);
  let s31 = f32x4.splat(0);
  let s32 = f32x4.splat(0);
  let s33 = f32x4.splat(0);
  for (const end = q + (<usize>headDim << 2); q < end; q += 4, p += 4, r += 4, s += 4, keys += 64) {
    const k0 = v128.load(keys);
    const k1 = v128.load(keys, 16);
    const k2 = v128.load(keys, 32);
    const k3 = v128.load(keys, 48);
    let x = v128.load_splat<f32>(q);
    s00 = fma(x, k0, s00);
    s01 = fma(x, k1, s01);
    s02 = fma(x, k2, s02);
    s03 = fma(x, k3, s03);
    x = v128.load_splat<f32>(p);
    s10 = fma(x, k0, s10);
    s11 = fma(x, k1, s11);
    s12 = fma(x, k2, s12);
    s13 = fma(x, k3, s13);
    x = v128.load_splat<f32>(r);
    s20 = fma(x, k0, s20);
    s21 = fma(x, k1, s21);
    s22 = fma(x, k2, s22);
    s23 = fma(x, k3, s23);
    x = v128.load_splat<f32>(s);
    s30 = fma(x, k0, s30);
    s31 = fma(x, k1, s31);
    s32 = fma(x, k2, s32);
    s33 = fma(x, k3, s33);
  }
  v128.store(scores, s00);
  v128.store(scores, s01, 16);
  v128.store(scores, s02, 32);
  v128.store(scores, s03, 48);
  scores += scoreStride;
  v128.store(scores, s10);
  v128.store(scores, s11, 16);
  v128.store(scores, s12, 32);
  v128.store(scores, s13, 48);
  scores += scoreStride;
  v128.store(scores, s20);
  v128.store(scores, s21, 16);
  v128.store(scores, s22, 32);
  v128.store(scores, s23, 48);
  scores += scoreStride;
  v128.store(scores, s30);
  v128.store(scores, s31, 16);
  v128.store(scores, s32, 32);
  v128.store(scores, s33, 48);
}

/** Adds the values of slots `from` to `to`, weighted by the four states, to the rows at `out`, `out` + `rowStride` … */
export function addFourRows(out: usize, rowStride: usize, values: usize, headDim: i32, state: usize, stateStride: usize, from: i32, to: i32): void {
  const rowBytes = <usize>headDim << 2;
  const end = out + rowBytes;
  values += <usize>from * rowBytes;
  for (; out + 64 <= end; out += 64, values += 64) addColumns(out, rowStride, values, rowBytes, state, stateStride, from, to);
  for (; out < end; out += 16, values += 16) addFourColumns(out, rowStride, values, rowBytes, state, stateStride, from, to);
}

/** Sixteen columns of four rows. */
// @ts-ignore: decorator
@inline
function addColumns(out: usize, rowStride: usize, value: usize, rowBytes: usize, state: usize, stateStride: usize, from: i32, to: i32): void {
  let p = state + stateStride;
  let r = p + stateStride;
  let s = r + stateStride;
  const second = out + rowStride;
  const third = second + rowStride;
  const fourth = third + rowStride;
  let x = v128.load_splat<f32>(state, 8);
  let a00 = f32x4.mul(v128.load(out), x);
  let a01 = f32x4.mul(v128.load(out, 16), x);
  let a02 = f32x4.mul(v128.load(out, 32), x);
  let a03 = f32x4.mul(v128.load(out, 48), x);
  x = v128.load_splat<f32>(p, 8);
  let a10 = f32x4.mul(v128.load(second), x);
  let a11 = f32x4.mul(v128.load(second, 16), x);
  let a12 = f32x4.mul(v128.load(second, 32), x);
  let a13 = f32x4.mul(v128.load(second, 48), x);
  x = v128.load_splat<f32>(r, 8);
  let a20 = f32x4.mul(v128.load(third), x);
  let a21 = f32x4.mul(v128.load(third, 16), x);
  let a22 = f32x4.mul(v128.load(third, 32), x);
  let a23 = f32x4.mul(v128.load(third, 48), x);
  x = v128.load_splat<f32>(s, 8);
  let a30 = f32x4.mul(v128.load(fourth), x);
  let a31 = f32x4.mul(v128.load(fourth, 16), x);
  let a32 = f32x4.mul(v128.load(fourth, 32), x);
  let a33 = f32x4.mul(v128.load(fourth, 48), x);
  const first = <usize>from << 2;
  state += first;
  p += first;
  r += first;
  s += first;
  for (let t = from; t < to; t++, state += 4, p += 4, r += 4, s += 4, value += rowBytes) {
    const v0 = v128.load(value);
    const v1 = v128.load(value, 16);
    const v2 = v128.load(value, 32);
    const v3 = v128.load(value, 48);
    x = v128.load_splat<f32>(state, 16);
    a00 = fma(x, v0, a00);
    a01 = fma(x, v1, a01);
    a02 = fma(x, v2, a02);
    a03 = fma(x, v3, a03);
    x = v128.load_splat<f32>(p, 16);
    a10 = fma(x, v0, a10);
    a11 = fma(x, v1, a11);
    a12 = fma(x, v2, a12);
    a13 = fma(x, v3, a13);
    x = v128.load_splat<f32>(r, 16);
    a20 = fma(x, v0, a20);
    a21 = fma(x, v1, a21);
    a22 = fma(x, v2, a22);
    a23 = fma(x, v3, a23);
    x = v128.load_splat<f32>(s, 16);
    a30 = fma(x, v0, a30);
    a31 = fma(x, v1, a31);
    a32 = fma(x, v2, a32);
    a33 = fma(x, v3, a33);
  }
  v128.store(out, a00);
  v128.store(out, a01, 16);
  v128.store(out, a02, 32);
  v128.store(out, a03, 48);
  v128.store(second, a10);
  v128.store(second, a11, 16);
  v128.store(second, a12, 32);
  v128.store(second, a13, 48);
  v128.store(third, a20);
  v128.store(third, a21, 16);
  v128.store(third, a22, 32);
  v128.store(third, a23, 48);
  v128.store(fourth, a30);
  v128.store(fourth, a31, 16);
  v128.store(fourth, a32, 32);
  v128.store(fourth, a33, 48);
}

/** Four columns of four rows, for head sizes that are not a multiple of sixteen. */
// @ts-ignore: decorator
@inline
function addFourColumns(out: usize, rowStride: usize, value: usize, rowBytes: usize, state: usize, stateStride: usize, from: i32, to: i32): void {
  for (let i = 0; i < 4; i++, out += rowStride, state += stateStride) {
    let a = f32x4.mul(v128.load(out), v128.load_splat<f32>(state, 8));
    let at = value;
    for (let t = from; t < to; t++, at += rowBytes) a = fma(v128.load_splat<f32>(state + (<usize>t << 2), 16), v128.load(at), a);
    v128.store(out, a);
  }
}
