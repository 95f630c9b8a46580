/** A seeded source of uniform numbers in [0, 1). */
export interface Random {
  next(): number;
}

/** A number from the standard normal distribution (Box–Muller; 1 − u is never 0). */
export function drawNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}

/**
 * sfc32 (Small Fast Counter, PractRand-clean), seeded through splitmix32 so that similar seeds give unrelated streams.
 * Seeds are taken modulo 2^53; the same seed gives the same stream on every platform.
 */
export function createRandom(seed: number): Random {
  let state = (seed ^ Math.floor(seed / 4294967296)) >>> 0;
  const splitmix = (): number => {
    state = (state + 0x9e3779b9) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return (z ^ (z >>> 16)) >>> 0;
  };
  let a = splitmix();
  let b = splitmix();
  let c = splitmix();
  let counter = 1;
  const next32 = (): number => {
    const t = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    return t >>> 0;
  };
  for (let i = 0; i < 12; i++) next32();
  // 53 bits: the high 27 and 26 bits of two draws.
  return { next: () => ((next32() >>> 5) * 67108864 + (next32() >>> 6)) / 9007199254740992 };
}
