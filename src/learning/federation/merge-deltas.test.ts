import { describe, expect, test } from 'vitest';
import type { LowRankFactors } from '../../adapters/types.ts';
import { createRandom, drawNormal } from '../../core/random.ts';
import { type Delta, deltaNorm, mergeDeltas } from './merge-deltas.ts';

const NUM_ROWS = 7;
const NUM_COLS = 9;
const SITE = { target: 'output', layer: -1, numRows: NUM_ROWS, numCols: NUM_COLS } as const;
const random = createRandom(4);
const draw = (length: number): Float32Array => Float32Array.from({ length }, () => drawNormal(random));

const randomDelta = (rank = 2): LowRankFactors[] => [
  { ...SITE, rank, scale: 0.5, a: draw(rank * NUM_COLS), b: draw(NUM_ROWS * rank) },
];
const scaled = (delta: Delta, by: number): Delta => delta.map((one) => ({ ...one, scale: one.scale * by }));

/** ΔW as a dense matrix. */
function dense([one]: Delta): number[] {
  const { rank, scale, a, b } = one!;
  return Array.from({ length: NUM_ROWS * NUM_COLS }, (_, i) => {
    const [row, col] = [Math.floor(i / NUM_COLS), i % NUM_COLS];
    let sum = 0;
    for (let r = 0; r < rank; r++) sum += b[row * rank + r]! * a[r * NUM_COLS + col]!;
    return scale * sum;
  });
}
/** With a rank that loses nothing. */
const merge = (deltas: readonly Delta[], rank = NUM_ROWS, own: Delta | null = null) =>
  mergeDeltas(own, deltas, { sites: [SITE], rank, pause: async () => {} });
const distance = (a: readonly number[], b: readonly number[]): number => Math.hypot(...a.map((x, i) => x - b[i]!));

describe('merging of ΔW', () => {
  test('[FD14] computes the norm without the product', () => {
    const delta = randomDelta();
    expect(deltaNorm(delta)).toBeCloseTo(Math.hypot(...dense(delta)), 5);
  });

  test('[FD14] of two is their mean, each as long as the shorter one', async () => {
    const [a, b] = [randomDelta(), randomDelta()];
    const { factors, norms, bound, keptEnergy } = await merge([a, scaled(b, 100)]);
    expect(bound).toBeCloseTo(Math.min(deltaNorm(a), 100 * deltaNorm(b)), 5);
    expect(norms[1]).toBeCloseTo(100 * deltaNorm(b), 2);
    const clipped = dense(scaled(b, deltaNorm(a) / deltaNorm(b)));
    const mean = dense(a).map((value, i) => (value + clipped[i]!) / 2);
    expect(distance(dense(factors), mean)).toBeLessThan(1e-4);
    expect(keptEnergy).toBeCloseTo(1, 6);
  });

  test('[FD14] lets a peer be twice as long as the own one, and no longer', async () => {
    const [a, b] = [randomDelta(), randomDelta()];
    const { bound, norms } = await merge([scaled(b, 100)], NUM_ROWS, a);
    expect(norms[0]).toBeCloseTo(deltaNorm(a), 5);
    expect(bound).toBeCloseTo(2 * deltaNorm(a), 5);
    expect((await merge([scaled(a, 1.5), scaled(a, 3)], NUM_ROWS, a)).bound).toBeCloseTo(2 * deltaNorm(a), 5);
    expect((await merge([scaled(a, 5), scaled(a, 3)], NUM_ROWS, a)).bound).toBeCloseTo(3 * deltaNorm(a), 5);
  });

  test('[FD14] of three is the median of each coordinate, projected onto the rows of A', async () => {
    // Six rows of A span less than nine columns, so compare with rows that span everything.
    const deltas = [randomDelta(4), randomDelta(4), randomDelta(4)];
    const { factors, bound, norms } = await merge(deltas);
    const each = deltas.map((one, i) => dense(scaled(one, Math.min(1, bound / norms[i]!))));
    const median = each[0]!.map((_, i) => each.map((one) => one[i]!).toSorted((a, b) => a - b)[1]!);
    expect(distance(dense(factors), median)).toBeLessThan(1e-4);
  });

  test('[FD15] a liar among three, however long and in whatever direction, moves the result no further from an honest node than another honest one is', async () => {
    const base = randomDelta(4);
    const noisy = (): LowRankFactors[] =>
      base.map((one) => ({ ...one, b: one.b.map((value) => value + 0.05 * drawNormal(random)) }));
    const [a, b] = [noisy(), noisy()];
    const honest = [a, b].map(dense);
    const longest = Math.max(deltaNorm(b), 2 * deltaNorm(a));
    const lies: Delta[] = [scaled(a, -1), scaled(a, 100), scaled(a, -100), randomDelta(4), scaled(randomDelta(4), 1e6)];
    for (const lie of lies) {
      const { factors, bound, norms } = await merge([b, lie], NUM_ROWS, a);
      expect(bound).toBeLessThanOrEqual(longest * (1 + 1e-9));
      const shares = norms.slice(0, 2).map((norm) => Math.min(1, bound / norm));
      const [x, y] = honest.map((one, i) => one.map((value) => value * shares[i]!));
      for (const one of [x!, y!]) expect(distance(dense(factors), one)).toBeLessThanOrEqual(distance(x!, y!) + 1e-4);
    }
  });

  test('[FD15] the plain mean would not hold: the control of the test above', () => {
    const a = dense(randomDelta());
    const mean = a.map((value) => (value + value - 100 * value) / 3);
    expect(Math.hypot(...mean)).toBeGreaterThan(30 * Math.hypot(...a));
  });

  test('[FD14] keeps the rank, and reports what that loses', async () => {
    const { factors, keptEnergy } = await merge([randomDelta(), randomDelta()], 1);
    expect(factors[0]).toMatchObject({ rank: 1, scale: 1, numRows: NUM_ROWS, numCols: NUM_COLS });
    expect(keptEnergy).toBeGreaterThan(0.3);
    expect(keptEnergy).toBeLessThan(0.999);
  });

  test('[FD14] a node without the matrix votes for no change', async () => {
    const [a, b] = [randomDelta(), randomDelta()];
    const { factors } = await merge([a, b, []]);
    const each = [dense(a), dense(b)];
    for (const [i, value] of dense(factors).entries()) {
      if (each[0]![i]! * each[1]![i]! < 0) expect(Math.abs(value)).toBeLessThan(Math.max(...each.map((one) => Math.abs(one[i]!)))); // prettier-ignore
    }
    expect((await merge([[], []])).factors[0]!.b.every((value) => value === 0)).toBe(true);
  });
});
