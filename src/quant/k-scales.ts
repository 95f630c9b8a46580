/**
 * The 12 bytes of Q4_K and Q5_K that hold eight 6-bit scales and eight 6-bit mins:
 *   byte j     (j < 4): scale j,     plus the two upper bits of scale j + 4
 *   byte j + 4 (j < 4): min j,       plus the two upper bits of min j + 4
 *   byte j + 8 (j < 4): the lower four bits of scale j + 4, then of min j + 4
 */
export function packedScale(bytes: Uint8Array, at: number, index: number): number {
  if (index < 4) return bytes[at + index]! & 63;
  return (bytes[at + index + 4]! & 15) | ((bytes[at + index - 4]! >> 6) << 4);
}

/** The min that belongs to `packedScale`. */
export function packedMin(bytes: Uint8Array, at: number, index: number): number {
  if (index < 4) return bytes[at + index + 4]! & 63;
  return (bytes[at + index + 4]! >> 4) | ((bytes[at + index]! >> 6) << 4);
}

/** Writes all eight pairs. */
export function packScalesAndMins(out: Uint8Array, at: number, scales: Uint8Array, mins: Uint8Array): void {
  for (let j = 0; j < 4; j++) {
    out[at + j] = scales[j]! | ((scales[j + 4]! >> 4) << 6);
    out[at + j + 4] = mins[j]! | ((mins[j + 4]! >> 4) << 6);
    out[at + j + 8] = (scales[j + 4]! & 15) | ((mins[j + 4]! & 15) << 4);
  }
}
