/** UTF-8 reading state: 0 between characters, otherwise what the next byte must be. */
const NUM_STATES = 8;
const [ONE, TWO, THREE, AFTER_E0, AFTER_ED, AFTER_F0, AFTER_F4] = [1, 2, 3, 4, 5, 6, 7];

const steps = new Int8Array(NUM_STATES * 256).fill(-1);
function allow(state: number, lo: number, hi: number, next: number): void {
  steps.fill(next, state * 256 + lo, state * 256 + hi + 1);
}
allow(0, 0, 0x7f, 0);
allow(0, 0xc2, 0xdf, ONE);
allow(0, 0xe0, 0xef, TWO);
allow(0, 0xf0, 0xf4, THREE);
// These four restrict the next byte: overlong forms, surrogates, codes beyond the last.
allow(0, 0xe0, 0xe0, AFTER_E0);
allow(0, 0xed, 0xed, AFTER_ED);
allow(0, 0xf0, 0xf0, AFTER_F0);
allow(0, 0xf4, 0xf4, AFTER_F4);
allow(ONE, 0x80, 0xbf, 0);
allow(TWO, 0x80, 0xbf, ONE);
allow(THREE, 0x80, 0xbf, TWO);
allow(AFTER_E0, 0xa0, 0xbf, ONE);
allow(AFTER_ED, 0x80, 0x9f, ONE);
allow(AFTER_F0, 0x90, 0xbf, TWO);
allow(AFTER_F4, 0x80, 0x8f, TWO);

/** The state after one more byte; -1 if it is not UTF-8. */
export function utf8Step(state: number, byte: number): number {
  return steps[state * 256 + byte]!;
}

/** A byte that brings an unfinished character closer to its end. */
export function utf8Filler(state: number): number {
  let byte = 0x80;
  while (utf8Step(state, byte) < 0) byte++;
  return byte;
}
