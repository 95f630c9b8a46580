/**
 * Fills a part of a matrix with arbitrary blocks, for tests of kernels: fitting real ones would take longer than the test. Bits 14 and 13 of
 * each 16-bit word are 0 and 1, so that all half-precision scales are between 2^-7 and 2.
 */
export function fillBlocks(target: Uint8Array, at: number): void {
  let state = at + 1;
  for (let i = 0; i < target.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    target[i] = (at + i) % 2 === 0 ? state >>> 24 : ((state >>> 24) & 0x9f) | 0x20;
  }
}
