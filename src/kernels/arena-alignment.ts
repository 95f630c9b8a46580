import { RuvLLMError } from '../core/errors.ts';

/** One cache line: threads never write to a shared line, and every SIMD load is aligned. */
export const ARENA_ALIGNMENT = 64;

/** The size rounded up to the arena's alignment: the bytes one `allocate` uses. */
export function alignArena(sizeBytes: number): number {
  return Math.ceil(sizeBytes / ARENA_ALIGNMENT) * ARENA_ALIGNMENT;
}

/** A byte offset into the arena; those from `allocate` are multiples of `ARENA_ALIGNMENT`. */
export type Offset = number;

/** The bytes that an allocation takes of `freeBytes`; `what` names it in the error. */
export function takeRoom(sizeBytes: number, freeBytes: number, what: string): number {
  const taken = alignArena(sizeBytes);
  if (taken <= freeBytes) return taken;
  throw new RuvLLMError('out_of_memory', `${what} needs ${sizeBytes} bytes, the arena has ${freeBytes} left`, {
    data: { neededBytes: sizeBytes, freeBytes },
  });
}

/** The last of some ordered allocations that begins at `offset` or before; undefined: there is none. */
export function lastFrom<Part extends { readonly offset: Offset }>(
  parts: readonly Part[],
  offset: Offset,
): Part | undefined {
  let [low, high] = [0, parts.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (parts[middle]!.offset <= offset) low = middle;
    else high = middle - 1;
  }
  const part = parts[low];
  return part !== undefined && part.offset <= offset ? part : undefined;
}
