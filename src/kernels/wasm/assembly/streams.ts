// Several residual streams, and statistics of rows. A chunk is a row.
import { address, takeChunk } from './control';
import { sumOf } from './elementwise';

/** args: 2 base, 3 x, 4 coefficients, 5 out, 6 streams of out, 7 of x, 8 rows, 9 dim, 10 shift (f32). */
export function mixStreamsOp(op: usize): void {
  const numOut = load<i32>(op, 24);
  const numIn = load<i32>(op, 28);
  const rows = load<i32>(op, 32);
  const dim = load<i32>(op, 36);
  const shift = load<f32>(op, 40);
  const rowBytes = <usize>dim << 2;
  for (let t = takeChunk(op); t < rows; t = takeChunk(op)) {
    const coefficients = address(op, 16) + (<usize>(t * numOut * numIn) << 2);
    for (let i = 0; i < numOut; i++) {
      const at = (<usize>i * <usize>rows + <usize>t) * rowBytes;
      const out = address(op, 20) + at;
      let sum = address(op, 8) + at;
      for (let j = 0; j < numIn; j++) {
        const x = address(op, 12) + (<usize>j * <usize>rows + <usize>t) * rowBytes;
        addScaled(out, sum, x, load<f32>(coefficients + (<usize>(i * numIn + j) << 2)) + shift, dim);
        sum = out;
      }
    }
  }
}

/** out = sum + factor * x. */
function addScaled(out: usize, sum: usize, x: usize, factor: f32, dim: i32): void {
  const factors = f32x4.splat(factor);
  let c = 0;
  for (; c + 4 <= dim; c += 4) {
    const at = <usize>c << 2;
    v128.store(out + at, f32x4.add(v128.load(sum + at), f32x4.mul(factors, v128.load(x + at))));
  }
  for (; c < dim; c++) {
    const at = <usize>c << 2;
    store<f32>(out + at, load<f32>(sum + at) + factor * load<f32>(x + at));
  }
}

/** args: 2 x, 3 target, 4 rows, 5 dim. */
export function matchLengthsOp(op: usize): void {
  const rows = load<i32>(op, 16);
  const dim = load<i32>(op, 20);
  for (let r = takeChunk(op); r < rows; r = takeChunk(op)) {
    const at = <usize>r * (<usize>dim << 2);
    const x = address(op, 8) + at;
    const length = sumOf(x, dim, 0, true);
    const target = sumOf(address(op, 12) + at, dim, 0, true);
    const factor: f32 = length == 0 ? 0 : <f32>sqrt<f64>(target / length);
    for (let c = 0; c < dim; c++) store<f32>(x + (<usize>c << 2), load<f32>(x + (<usize>c << 2)) * factor);
  }
}

/** args: 2 x, 3 rows, 4 dim, 5 threshold (f32). */
export function sparsifyOp(op: usize): void {
  const rows = load<i32>(op, 12);
  const dim = load<i32>(op, 16);
  const threshold = <f64>load<f32>(op, 20);
  for (let r = takeChunk(op); r < rows; r = takeChunk(op)) {
    const x = address(op, 8) + <usize>r * (<usize>dim << 2);
    const mean = sumOf(x, dim, 0, false) / <f64>dim;
    const cutoff = <f32>(mean + threshold * sqrt<f64>(sumOf(x, dim, mean, true) / <f64>(dim - 1)));
    for (let c = 0; c < dim; c++) {
      const at = <usize>c << 2;
      const value = load<f32>(x + at);
      store<f32>(x + at, value <= cutoff ? 0 : value - cutoff);
    }
  }
}
