// Nearest rows by the signs of their values, then by 8-bit dot products.

/** Bytes of a row of coarse signs, and of fine ones. */
const COARSE: usize = 32;
const FINE: usize = 64;

/** In place: the Walsh-Hadamard transform of f32[length], a power of two from 8 on; then its signs as bits. */
export function takeSigns(values: usize, length: i32, signs: usize, numWords: i32): void {
  const end = values + (<usize>length << 2);
  for (let at = values; at < end; at += 16) {
    const v = v128.load(at);
    const pairs = f32x4.add(v128.shuffle<f32>(v, v, 0, 0, 2, 2), f32x4.mul(v128.shuffle<f32>(v, v, 1, 1, 3, 3), f32x4(1, -1, 1, -1)));
    const halves = f32x4.add(v128.shuffle<f32>(pairs, pairs, 0, 1, 0, 1), f32x4.mul(v128.shuffle<f32>(pairs, pairs, 2, 3, 2, 3), f32x4(1, 1, -1, -1)));
    v128.store(at, halves);
  }
  for (let half: usize = 16; half < <usize>length << 2; half <<= 1) {
    for (let block = values; block < end; block += half << 1) {
      for (let at = block; at < block + half; at += 16) {
        const a = v128.load(at);
        const b = v128.load(at + half);
        v128.store(at, f32x4.add(a, b));
        v128.store(at + half, f32x4.sub(a, b));
      }
    }
  }
  const zero = f32x4.splat(0);
  for (let word = 0; word < numWords; word++, signs += 4) {
    let bits = 0;
    for (let i = 0; i < 32; i += 4, values += 16) bits |= i32x4.bitmask(f32x4.gt(v128.load(values), zero)) << i;
    store<i32>(signs, bits);
  }
}

// @ts-ignore: decorator
@inline
function differing(x: usize, y: usize): v128 {
  return i8x16.popcnt(v128.xor(v128.load(x), v128.load(y)));
}

// @ts-ignore: decorator
@inline
function coarseBytes(x: usize, y: usize): v128 {
  return i8x16.add(differing(x, y), differing(x + 16, y + 16));
}

/** Sums of neighbouring bytes: eight of `a`, then eight of `b`. */
// @ts-ignore: decorator
@inline
function addPairs(a: v128, b: v128): v128 {
  return i8x16.add(
    v128.shuffle<i8>(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
    v128.shuffle<i8>(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31),
  );
}

// @ts-ignore: decorator
@inline
function fineDistance(x: usize, y: usize): i32 {
  const sums = i8x16.add(coarseBytes(x, y), coarseBytes(x + 32, y + 32));
  const fours = i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(sums));
  const pairs = i32x4.add(fours, v128.shuffle<i32>(fours, fours, 2, 3, 2, 3));
  return i32x4.extract_lane(pairs, 0) + i32x4.extract_lane(pairs, 1);
}

/** Distances u16[numRows] of coarse signs, eight rows at a time: adding up the bytes of one row alone takes twice as long. */
function coarseDistances(rows: usize, numRows: i32, signs: usize, distances: usize): void {
  for (let row = 0; row < numRows; row += 8, rows += 8 * COARSE, distances += 16) {
    const a = addPairs(coarseBytes(rows, signs), coarseBytes(rows + COARSE, signs));
    const b = addPairs(coarseBytes(rows + 2 * COARSE, signs), coarseBytes(rows + 3 * COARSE, signs));
    const c = addPairs(coarseBytes(rows + 4 * COARSE, signs), coarseBytes(rows + 5 * COARSE, signs));
    const d = addPairs(coarseBytes(rows + 6 * COARSE, signs), coarseBytes(rows + 7 * COARSE, signs));
    v128.store(distances, i16x8.extadd_pairwise_i8x16_u(addPairs(addPairs(a, b), addPairs(c, d))));
  }
}

/** Counts u32 one more distance at `histogram`. */
// @ts-ignore: decorator
@inline
function count(histogram: usize, distance: i32): void {
  const at = histogram + (<usize>distance << 2);
  store<i32>(at, load<i32>(at) + 1);
}

/** The least limit that `wanted` of the counted distances do not exceed. */
function limitOf(histogram: usize, numBits: i32, wanted: i32): i32 {
  let limit = 0;
  for (let seen = load<i32>(histogram); seen < wanted && limit < numBits;) {
    limit++;
    seen += load<i32>(histogram + (<usize>limit << 2));
  }
  return limit;
}

/**
 * Writes the nearest of `numRows` rows by their signs to `slots` (i32[numRows]); returns their number, `numRanked` or more because of
 * equal distances. `distances` is u16[numRows], `histogram` i32[769]. Reads up to seven rows beyond the last.
 */
export function findNear(
  coarse: usize,
  fine: usize,
  numRows: i32,
  signs: usize,
  numCoarse: i32,
  numRanked: i32,
  distances: usize,
  histogram: usize,
  slots: usize,
): i32 {
  const numBits = <i32>(COARSE + FINE) << 3;
  memory.fill(histogram, 0, <usize>(numBits + 1) << 2);
  coarseDistances(coarse, numRows, signs, distances);
  for (let slot = 0; slot < numRows; slot++) count(histogram, load<u16>(distances + (<usize>slot << 1)));
  const coarseLimit = limitOf(histogram, numBits, numCoarse);
  const limits = i16x8.splat(<i16>coarseLimit);
  memory.fill(histogram, 0, <usize>(numBits + 1) << 2);
  let numNear = 0;
  for (let first = 0; first < numRows; first += 8) {
    const eight = distances + (<usize>first << 1);
    let near = i16x8.bitmask(i16x8.le_s(v128.load(eight), limits));
    for (; near != 0; near &= near - 1) {
      const slot = first + ctz(near);
      if (slot >= numRows) break;
      const at = distances + (<usize>slot << 1);
      const distance = <i32>load<u16>(at) + fineDistance(fine + <usize>slot * FINE, signs + COARSE);
      store<u16>(at, <u16>distance);
      count(histogram, distance);
      store<i32>(slots + (<usize>numNear << 2), slot);
      numNear++;
    }
  }
  const fineLimit = limitOf(histogram, numBits, numRanked);
  let numKept = 0;
  for (let i = 0; i < numNear; i++) {
    const slot = load<i32>(slots + (<usize>i << 2));
    if (<i32>load<u16>(distances + (<usize>slot << 1)) > fineLimit) continue;
    store<i32>(slots + (<usize>numKept << 2), slot);
    numKept++;
  }
  return numKept;
}

/** Dot products of i16[dim] with rows of i8[dim] into f32 `scores`, times the row's scale; `dim` is a multiple of 16. */
export function rankRows(query: usize, codes: usize, scales: usize, dim: i32, slots: usize, numSlots: i32, scores: usize): void {
  for (let i = 0; i < numSlots; i++, slots += 4, scores += 4) {
    const slot = <usize>load<i32>(slots);
    const row = codes + slot * <usize>dim;
    let a = i32x4.splat(0);
    let b = i32x4.splat(0);
    for (let at: usize = 0; at < <usize>dim; at += 16) {
      const bytes = v128.load(row + at);
      a = i32x4.add(a, i32x4.dot_i16x8_s(v128.load(query + 2 * at), i16x8.extend_low_i8x16_s(bytes)));
      b = i32x4.add(b, i32x4.dot_i16x8_s(v128.load(query + 2 * at, 16), i16x8.extend_high_i8x16_s(bytes)));
    }
    a = i32x4.add(a, b);
    const sum = i32x4.extract_lane(a, 0) + i32x4.extract_lane(a, 1) + i32x4.extract_lane(a, 2) + i32x4.extract_lane(a, 3);
    store<f32>(scores, <f32>sum * load<f32>(scales + (slot << 2)));
  }
}
