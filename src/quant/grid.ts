/** Decodes a table of points: 16-bit little-endian codes in base64, with the index of value k in `values` at bit k * log2. */
export function decodeGrid(base64: string, values: readonly number[], dim: number): Int8Array {
  const bytes = atob(base64);
  const bits = values.length > 4 ? 3 : 2;
  const grid = new Int8Array((bytes.length / 2) * dim);
  for (let i = 0; i < grid.length; i++) {
    const at = Math.floor(i / dim) * 2;
    const code = bytes.charCodeAt(at) | (bytes.charCodeAt(at + 1) << 8);
    grid[i] = values[(code >> (bits * (i % dim))) & ((1 << bits) - 1)]!;
  }
  return grid;
}

/** Eight sign bits for seven stored ones: the eighth makes the number of minuses even. */
export const EVEN_SIGNS = new Uint8Array(128);
for (let bits = 0; bits < 128; bits++) {
  let parity = 0;
  for (let k = 0; k < 7; k++) parity ^= (bits >> k) & 1;
  EVEN_SIGNS[bits] = bits | (parity << 7);
}

/** Writes `dim` values of a point to `levels`, negated where the sign bit is set. */
export function putPoint(
  grid: Int8Array,
  point: number,
  dim: number,
  signs: number,
  levels: Int8Array,
  to: number,
): void {
  const from = point * dim;
  for (let k = 0; k < dim; k++) {
    const minus = -((signs >> k) & 1); // 0 or -1: branches on random signs cost half of the speed
    levels[to + k] = (grid[from + k]! ^ minus) - minus;
  }
}
