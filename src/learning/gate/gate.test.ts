import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import { clusteredChange } from './clustered.ts';
import { decidePromotion, GATE_RULES } from './gate.ts';
import { pairedChange } from './paired.ts';

const NONE = { before: [], after: [] };
const losses = [2, 2.1, 1.9, 2.2, 2, 2.1];
const moved = (by: readonly number[]) => ({
  before: losses,
  after: losses.map((loss, i) => loss + by[i % by.length]!),
});

test('the interval of a mean matches t tables', () => {
  // Mean 0, standard deviation sqrt(2.5), five values: 2.776 * sqrt(2.5 / 5).
  const { mean, high } = pairedChange([0, 0, 0, 0, 0], [-2, -1, 0, 1, 2]);
  expect(mean).toBe(0);
  expect(high).toBeCloseTo(2.776 * Math.sqrt(0.5), 6);
  expect(pairedChange([1], [0])).toEqual({ count: 1, mean: -1, low: -Infinity, high: Infinity });
});

describe('the gate (LG1)', () => {
  test('accepts an update that helps significantly and harms nothing', () => {
    const decision = decidePromotion(moved([-0.3, -0.2]), moved([0.01, -0.01]));
    expect(decision).toMatchObject({ isAccepted: true, metrics: { held_out_count: 6, elsewhere_count: 6 } });
    expect(decision.metrics['held_out_mean']).toBeCloseTo(-0.25, 10);
    const { held_out_before: before, held_out_after: after } = decision.metrics;
    expect(after! - before!).toBeCloseTo(-0.25, 10);
    expect(before).toBeGreaterThan(0);
    expect(decision.reason).toContain('falls: -0.2500');
  });

  test('rejects a gain below the least fall, however sure', () => {
    const [little, enough] = [moved([-0.01, -0.012]), moved([-0.06, -0.07])];
    expect(decidePromotion(little, NONE).isAccepted).toBe(true);
    const rules = { ...GATE_RULES, minFall: 0.05 };
    expect(decidePromotion(little, NONE, rules)).toMatchObject({
      isAccepted: false,
      reason: expect.stringContaining('it must fall by 0.05') as string,
    });
    expect(decidePromotion(enough, NONE, rules).isAccepted).toBe(true);
  });

  test.each([
    ['that makes it worse', moved([0.3, 0.2]), NONE, 'not sure'],
    ['of which it is not sure', moved([-0.5, 0.45]), NONE, 'not sure'],
    ['that changes nothing', moved([0]), NONE, 'not sure'],
    ['that harms elsewhere', moved([-0.3, -0.2]), moved([0.06, 0.07]), 'elsewhere rises'],
    ['that ruins one', moved([-0.3, -0.2]), moved([1.1, -1, -1, -1, -1, -1]), 'one example'],
    ['that nobody can judge', { before: [2, 2, 2], after: [1, 1.1, 1.2] }, NONE, '3 held-out examples are too few'],
    ['of no number', { before: losses, after: losses.map(() => Number.NaN) }, NONE, 'not a number'],
    ['that blows up elsewhere', moved([-0.3, -0.2]), { before: [1], after: [Infinity] }, 'not a number'],
  ])('refuses an update %s', (_name, wanted, elsewhere, reason) => {
    const decision = decidePromotion(wanted, elsewhere);
    expect(decision.isAccepted).toBe(false);
    expect(decision.reason).toContain(reason);
    expect(JSON.parse(JSON.stringify(decision.metrics))).toEqual(decision.metrics);
  });

  test('accepts pure noise in about 2.5 of 100 cases', () => {
    const random = createRandom(5);
    const noise = (): number => random.next() + random.next() + random.next() - 1.5;
    let numAccepted = 0;
    for (let i = 0; i < 2000; i++) {
      const after = Array.from({ length: 12 }, () => 2 + 0.1 * noise());
      if (decidePromotion({ before: after.map(() => 2), after }, NONE).isAccepted) numAccepted++;
    }
    expect(numAccepted).toBeGreaterThan(20);
    expect(numAccepted).toBeLessThan(80);
  });
});

describe('groups of pairs', () => {
  test('groups of one have at least the interval of t tables; equal pairs of a group count once', () => {
    const after = [0.3, 0.1, 0.4, 0.2, 0.25, 0.1, 0.3, 0.2];
    const before = after.map(() => 0);
    const single = clusteredChange(before, after, after.map((_, i) => `g${i}`)); // prettier-ignore
    const paired = pairedChange(before, after);
    expect([single.mean, single.count, single.numGroups]).toEqual([paired.mean, 8, 8]);
    expect(single.low).toBeLessThanOrEqual(paired.low + 1e-12);
    expect(single.high).toBeGreaterThanOrEqual(paired.high - 1e-12);
    // Each said ten times: as sure as before, where pairs would be far surer.
    const ten = <T>(values: readonly T[]): T[] => values.flatMap((value) => Array.from({ length: 10 }, () => value));
    const repeated = clusteredChange(ten(before), ten(after), ten(after.map((_, i) => `g${i}`))); // prettier-ignore
    expect(repeated.low).toBeCloseTo(single.low, 12);
    expect(pairedChange(ten(before), ten(after)).low).toBeGreaterThan(single.low + 0.03);
    expect(clusteredChange(before, after, after.map(() => 'one'))).toMatchObject({ numGroups: 1, low: -Infinity }); // prettier-ignore
  });

  test('noise shared by groups is accepted in 2.5 of 100 cases, unlike with pairs', () => {
    const random = createRandom(9);
    const noise = (): number => random.next() + random.next() + random.next() - 1.5;
    let [byGroup, byPair] = [0, 0];
    for (let i = 0; i < 600; i++) {
      const shared = Array.from({ length: 12 }, noise);
      const groups = Array.from({ length: 60 }, (_, n) => n % 12);
      const after = groups.map((group) => shared[group]! + 0.3 * noise());
      const before = after.map(() => 0);
      if (clusteredChange(before, after, groups.map(String)).low > 0) byGroup++; // prettier-ignore
      if (pairedChange(before, after).low > 0) byPair++;
    }
    expect(byGroup).toBeGreaterThan(4);
    expect(byGroup).toBeLessThan(30);
    expect(byPair).toBeGreaterThan(60);
  });
});
