import { createSmallKernels } from './small-kernels.ts';

/** Bytes of a row of coarse signs and of fine ones, as in assembly/small/sign-search.ts. */
export const COARSE_BYTES = 32;
export const FINE_BYTES = 64;
export const NUM_SIGNS = 8 * (COARSE_BYTES + FINE_BYTES);
/** Rows of 8-bit values have a multiple of this length. */
export const ROW_MULTIPLE = 16;

/** Offsets are in bytes, in the instance's memory. */
export interface SignSearch {
  /** In place: the Walsh-Hadamard transform of f32[length], a power of two from `NUM_SIGNS` on; the signs of the first values as bits. */
  takeSigns(values: number, length: number, signs: number, numWords: number): void;
  /**
   * Writes the nearest rows by their signs to `slots`, i32[numRows]: `numCoarse` by the coarse signs, of these `numRanked` by all signs, or
   * more because of equal distances. Returns their number. Scratch: `distances` u16[numRows], `histogram` i32[NUM_SIGNS + 1].
   */
  findNear(
    coarse: number,
    fine: number,
    numRows: number,
    signs: number,
    numCoarse: number,
    numRanked: number,
    distances: number,
    histogram: number,
    slots: number,
  ): number;
  /** Dot products of i16[dim] and rows of i8[dim], times the scale of the row, into f32[numSlots]. */
  rankRows(
    query: number,
    codes: number,
    scales: number,
    dim: number,
    slots: number,
    numSlots: number,
    scores: number,
  ): void;
}

/** On its own memory, which the caller lays out and grows. */
export const createSignSearch = (memory: WebAssembly.Memory): SignSearch =>
  createSmallKernels(memory) as unknown as SignSearch;
