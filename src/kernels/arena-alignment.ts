/** One cache line: a thread never shares a line it writes with another, and every SIMD load is aligned. */
export const ARENA_ALIGNMENT = 64;

/** Size rounded up to the arena's alignment: what one `allocate` really takes. */
export function alignArena(sizeBytes: number): number {
  return Math.ceil(sizeBytes / ARENA_ALIGNMENT) * ARENA_ALIGNMENT;
}

/** A byte offset into the arena. Always a multiple of `ARENA_ALIGNMENT` when it comes from `allocate`. */
export type Offset = number;
