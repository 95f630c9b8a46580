import type { RandomIntegers } from './random-integers.ts';

/** True with probability e^(−numerator/denominator); the fraction is at most 1. */
function isExpSmall(numerator: number, denominator: number, random: RandomIntegers): boolean {
  for (let k = 1; ; k++) if (random.below(denominator * k) >= numerator) return k % 2 === 1;
}

/** Integers with probability proportional to e^(−|x|/scale). */
function discreteLaplace(scale: number, random: RandomIntegers): number {
  for (;;) {
    const offset = random.below(scale);
    if (!isExpSmall(offset, scale, random)) continue;
    let steps = 0;
    while (isExpSmall(1, 1, random)) steps++;
    const size = offset + scale * steps;
    const isNegative = random.below(2) === 1;
    if (!isNegative || size > 0) return isNegative ? -size : size;
  }
}

/**
 * Integers with probability proportional to e^(−x²/2σ²), without any rounding (Canonne, Kamath and Steinke 2020, algorithm 3).
 * `variance` is σ², an integer: floating-point noise has gaps that reveal the value below it (Mironov 2012).
 */
export function discreteGaussian(variance: number, random: RandomIntegers): number {
  const scale = Math.floor(Math.sqrt(variance)) + 1;
  for (;;) {
    const value = discreteLaplace(scale, random);
    // (|x| − σ²/t)² / 2σ² = (|x|·t − σ²)² / (2σ²t²), in lowest terms that stay exact.
    const difference = BigInt(Math.abs(value)) * BigInt(scale) - BigInt(variance);
    const numerator = difference * difference;
    const denominator = 2n * BigInt(variance) * BigInt(scale) * BigInt(scale);
    if (isExpOf(numerator, denominator, random)) return value;
  }
}

/** True with probability e^(−numerator/denominator): factors of e^(−1) first, then the remainder. */
function isExpOf(numerator: bigint, denominator: bigint, random: RandomIntegers): boolean {
  for (; numerator > denominator; numerator -= denominator) if (!isExpSmall(1, 1, random)) return false;
  for (let k = 1n; ; k++) if (!isBelow(numerator, denominator * k, random)) return k % 2n === 1n;
}

const WORD = 1n << 48n;

/** True with probability numerator/denominator: compares a random number digit by digit, to base 2^48. */
function isBelow(numerator: bigint, denominator: bigint, random: RandomIntegers): boolean {
  for (;;) {
    if (numerator >= denominator) return true;
    const scaled = numerator * WORD;
    const digit = scaled / denominator;
    const drawn = BigInt(random.below(2 ** 48));
    if (drawn !== digit) return drawn < digit;
    numerator = scaled % denominator;
    if (numerator === 0n) return false;
  }
}
