// Sums and differences are of f64 and stored as f32, as JavaScript computes them: stored vectors have these bits.

/**
 * In place, f64[width]: removes `total` times the mean, then `count` directions f64[count × width] one after the other. Dot products are
 * summed in order.
 */
export function removeDirections(values: usize, mean: usize, directions: usize, width: i32, count: i32, total: f64): void {
  const bytes = <usize>width << 3;
  for (let at: usize = 0; at < bytes; at += 8) store<f64>(values + at, load<f64>(values + at) - total * load<f64>(mean + at));
  for (let i = 0; i < count; i++, directions += bytes) {
    let part: f64 = 0;
    for (let at: usize = 0; at < bytes; at += 8) part += load<f64>(values + at) * load<f64>(directions + at);
    for (let at: usize = 0; at < bytes; at += 8) store<f64>(values + at, load<f64>(values + at) - part * load<f64>(directions + at));
  }
}

// @ts-ignore: decorator
@inline
function loadTwo(at: usize): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(at));
}

// @ts-ignore: decorator
@inline
function storeTwo(at: usize, two: v128): void {
  v128.store64_lane(at, f32x4.demote_f64x2_zero(two), 0);
}

/** In place: two steps of the Walsh-Hadamard transform, of values next to each other. */
function mixNeighbours(at: usize, end: usize): void {
  for (; at < end; at += 16) {
    const w = <f64>load<f32>(at);
    const x = <f64>load<f32>(at, 4);
    const y = <f64>load<f32>(at, 8);
    const z = <f64>load<f32>(at, 12);
    store<f32>(at, <f32>(w + x + (y + z)));
    store<f32>(at, <f32>(w - x + (y - z)), 4);
    store<f32>(at, <f32>(w + x - (y + z)), 8);
    store<f32>(at, <f32>(w - x - (y - z)), 12);
  }
}

/** In place: two steps, of values `half` bytes apart; `half` is a multiple of 8. */
function mixDistant(start: usize, end: usize, half: usize): void {
  for (let block = start; block < end; block += 4 * half) {
    for (let at = block; at < block + half; at += 8) {
      const w = loadTwo(at);
      const x = loadTwo(at + half);
      const y = loadTwo(at + 2 * half);
      const z = loadTwo(at + 3 * half);
      const a = f64x2.add(w, x);
      const b = f64x2.sub(w, x);
      const c = f64x2.add(y, z);
      const d = f64x2.sub(y, z);
      storeTwo(at, f64x2.add(a, c));
      storeTwo(at + half, f64x2.add(b, d));
      storeTwo(at + 2 * half, f64x2.sub(a, c));
      storeTwo(at + 3 * half, f64x2.sub(b, d));
    }
  }
}

/** In place: one step, of pairs of neighbours. */
function mixPairs(at: usize, end: usize): void {
  for (; at < end; at += 8) {
    const a = <f64>load<f32>(at);
    const b = <f64>load<f32>(at, 4);
    store<f32>(at, <f32>(a + b));
    store<f32>(at, <f32>(a - b), 4);
  }
}

function hadamard(start: usize, end: usize, block: i32): void {
  let half: usize = 4;
  if (clz(block) % 2 == 0) {
    mixPairs(start, end);
    half = 8;
  } else {
    mixNeighbours(start, end);
    half = 16;
  }
  for (; half < <usize>block << 2; half <<= 2) mixDistant(start, end, half);
}

/**
 * Rounds of a shuffle with signs and Walsh-Hadamard transforms of blocks, from f32[size] at `values`, with f32[size] at `spare`; returns
 * which of the two has the result. `orders` are i32[numRounds × size], `signs` f32 of the same size, `block` is a power of two from 16 on.
 */
export function rotate(values: usize, spare: usize, orders: usize, signs: usize, size: i32, block: i32, numRounds: i32): usize {
  const bytes = <usize>size << 2;
  for (let round = 0; round < numRounds; round++, orders += bytes, signs += bytes) {
    for (let at: usize = 0; at < bytes; at += 4) {
      store<f32>(spare + at, load<f32>(values + (<usize>load<i32>(orders + at) << 2)) * load<f32>(signs + at));
    }
    const mixed = spare;
    spare = values;
    values = mixed;
    hadamard(values, values + bytes, block);
  }
  return values;
}
