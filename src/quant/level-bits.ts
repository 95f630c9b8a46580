/** The lower four bits of 32 levels in 16 bytes: byte j holds those of level j, then of level j + 16. */
export function writeHalves(levels: Uint8Array, from: number, out: Uint8Array, at: number): void {
  for (let j = 0; j < 16; j++) out[at + j] = (levels[from + j]! & 15) | ((levels[from + j + 16]! & 15) << 4);
}

/** The fifth bits of 32 levels in 4 bytes. */
export function writeFifths(levels: Uint8Array, out: Uint8Array, at: number): void {
  out.fill(0, at, at + 4);
  for (let j = 0; j < 32; j++) out[at + (j >> 3)]! |= (levels[j]! >> 4) << (j & 7);
}

/** The lower four bits of 256 levels in 128 bytes: byte l of each 32 holds those of level l, then of level l + 32 of its 64. */
export function writeNibbles(levels: Uint8Array, out: Uint8Array, at: number): void {
  for (let byte = 0; byte < 128; byte++) {
    const first = (byte >> 5) * 64 + (byte & 31);
    out[at + byte] = (levels[first]! & 15) | ((levels[first + 32]! & 15) << 4);
  }
}

/** The lower two bits of 256 levels in 64 bytes: byte l of each 32 holds those of levels l, l + 32, l + 64, l + 96 of its 128. */
export function writePairs(levels: Uint8Array, out: Uint8Array, at: number): void {
  for (let byte = 0; byte < 64; byte++) {
    const first = (byte >> 5) * 128 + (byte & 31);
    out[at + byte] =
      (levels[first]! & 3) |
      ((levels[first + 32]! & 3) << 2) |
      ((levels[first + 64]! & 3) << 4) |
      ((levels[first + 96]! & 3) << 6);
  }
}
