/** Fills an array with random bytes. */
export type FillRandom = (bytes: Uint8Array<ArrayBuffer>) => void;

/** Cryptographic: who can predict noise can subtract it. */
export const fillFromCrypto: FillRandom = (bytes) => void crypto.getRandomValues(bytes);

/** Exact random decisions; rational numbers are pairs of integers, because rounding would leak through the noise. */
export interface RandomIntegers {
  /** Uniform in 0 … below − 1; `below` is at most 2^48. */
  below(limit: number): number;
  /** Uniform in [0, 1), for uses of noised numbers only. */
  unit(): number;
}

const POOL_BYTES = 1 << 14;
const WORD_BYTES = 6;
const RANGE = 2 ** (8 * WORD_BYTES);

export function createRandomIntegers(fill: FillRandom = fillFromCrypto): RandomIntegers {
  const pool = new Uint8Array(POOL_BYTES);
  let at = POOL_BYTES;
  const word = (): number => {
    if (at + WORD_BYTES > POOL_BYTES) {
      fill(pool);
      at = 0;
    }
    let value = 0;
    for (let i = 0; i < WORD_BYTES; i++) value = value * 256 + pool[at++]!;
    return value;
  };
  return {
    below(limit) {
      // The words above the last whole multiple would make small values likelier.
      const end = RANGE - (RANGE % limit);
      for (;;) {
        const value = word();
        if (value < end) return value % limit;
      }
    },
    unit: () => word() / RANGE,
  };
}
