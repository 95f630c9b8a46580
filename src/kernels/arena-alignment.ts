/** One cache line: threads never write to a shared line, and every SIMD load is aligned. */
export const ARENA_ALIGNMENT = 64;

/** The size rounded up to the arena's alignment: the bytes one `allocate` uses. */
export function alignArena(sizeBytes: number): number {
  return Math.ceil(sizeBytes / ARENA_ALIGNMENT) * ARENA_ALIGNMENT;
}

/** A byte offset into the arena; those from `allocate` are multiples of `ARENA_ALIGNMENT`. */
export type Offset = number;
