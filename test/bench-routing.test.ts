// The routing bench on data with known answers.
import { describe, expect, test } from 'vitest';
import { createRandom } from '../src/core/random.ts';
import type { Contestant } from '../src/learning/router/index.ts';
import { sumsAndLetters } from '../src/learning/router/test-examples.contract.ts';
import { campaign } from './support/campaign.ts';
import { isServerBuilt } from './support/dist-server.ts';

const load = async () => ({
  ...(await import('../bench/support/learn/routing-cross-fit.ts')),
  ...(await import('../bench/support/learn/routing-feedback.ts')),
  ...(await import('../bench/support/learn/routing-intents.ts')),
  ...(await import('../bench/support/learn/routing-models.ts')),
  ...(await import('../bench/support/learn/routing-power.ts')),
  ...(await import('../bench/support/learn/routing-tables.ts')),
  router: await import('../src/learning/router/index.ts'),
});
const WORDS = [
  'card lost stolen street',
  'money wrong account sent',
  'pin forgot number blocked',
  'rate euro dollar today',
];

/** Four words of one intent each, in any order. */
function intents(count: number) {
  const random = createRandom(4);
  return Array.from({ length: count }, (_, i) => {
    const words = WORDS[i % 4]!.split(' ');
    const text = Array.from({ length: 5 }, () => words[Math.floor(random.next() * 4)]!).join(' ');
    return { text: `${text} ${i}`, group: String(i), cluster: String(i % 4), outcomes: WORDS.map((_, j) => +(j === i % 4)) }; // prettier-ignore
  });
}
const models = (count: number) =>
  sumsAndLetters(count, 3).map(({ text, isHard, group }) => ({ text, group, cluster: group, outcomes: [+!isHard, 1] }));

describe.skipIf(!isServerBuilt)('the routing bench', () => {
  test('draws the learning curve over 0 … 5000 feedbacks and learns nothing from random feedback', async () => {
    const { router, curveTable, encodeIntents, learnByFeedback } = await load();
    const set = encodeIntents(intents(400));
    const curves = [
      learnByFeedback('ridge', router.trainRidge([], 4), set, 'right or wrong'),
      learnByFeedback('ridge, random feedback', router.trainRidge([], 4), set, 'random'),
    ];
    const [header, learned, random] = curveTable(curves);
    expect(header!.slice(1)).toEqual(['0', '100', '300', '1000', '2000', '5000', '95 % of the last']);
    expect(learned![0]).toBe('ridge');
    expect(Number(learned![1])).toBeLessThanOrEqual(0.4);
    expect(Number(learned!.at(-2))).toBeGreaterThan(0.9);
    expect(Number(random!.at(-2))).toBeLessThan(0.6);
    for (const { points, interval } of curves) {
      expect(interval.low).toBeLessThanOrEqual(points.at(-1)!.accuracy);
      expect(interval.high).toBeGreaterThanOrEqual(points.at(-1)!.accuracy);
    }
  });

  test('finds a real gain, and none in shuffled outcomes', async () => {
    const { measureCrossFitted, encodeAll, claimOf, gainTable } = await load();
    const examples = encodeAll(models(150), []).train;
    const task = { title: 'two', names: ['small', 'large'], costs: [0, 1], only: ['always-large', 'linear', 'ridge'], fastGrnn: { maxEpochs: 4, weightDecay: 0.3 }, numShuffles: campaign({ short: 1, long: 3 }) }; // prettier-ignore
    const table = measureCrossFitted(task, examples, examples.map(({ group }) => group), () => {}); // prettier-ignore
    const { rows, controls, winners } = table;
    expect(rows.map(({ name }) => name)).toEqual(['chosen', 'prompt length', 'always-large', 'linear', 'ridge', 'oracle']); // prettier-ignore
    expect(rows[2]!.area).toBe(0);
    expect(table.fixed.map(({ name, cost }) => [name, cost])).toEqual([['small', 0], ['large', 1]]); // prettier-ignore
    expect(table.fixed[1]!.quality).toBe(1);
    expect(claimOf(table).isClaimed).toBe(true);
    expect(gainTable(table).at(-1)![0]).toEqual(['two: gain claimed']);
    const none = { ...rows[0]!, byCluster: { low: -0.001, high: 1 } };
    expect(gainTable({ ...table, rows: [none] }).at(-1)).toEqual([['two: NO GAIN CLAIMED'], ['the interval by cluster starts at -0.0010']]); // prettier-ignore
    const lucky = controls.map((control) => ({ ...control, most: 1 }));
    expect(claimOf({ ...table, controls: lucky })).toEqual({ isClaimed: false, why: 'a shuffle gained 1.0000' });
    expect(claimOf({ ...table, controls: [] }).isClaimed).toBe(false);
    expect(winners).toHaveLength(5);
    const [chosen] = rows;
    expect(chosen!.area).toBeGreaterThan(0.1);
    expect(chosen!.byCluster.low).toBeGreaterThan(0.05);
    expect(chosen!.ofOracle).toBeGreaterThan(0.9);
    for (const { most, difference, byRequest } of controls) {
      expect(most).toBeLessThan(0.05);
      expect(difference).toBeGreaterThan(0.05);
      expect(byRequest.low).toBeGreaterThan(0);
    }
  });

  test('gives a larger area to a better predictor, and none to one without knowledge', async () => {
    const { encodeAll, measurePower, powerTable } = await load();
    const { train } = encodeAll(models(200), []);
    const ofNoise = campaign({ short: [8], long: [8, 9, 10] }).map((seed) => {
      const random = createRandom(seed);
      const noise = train.map((one) => ({ ...one, outcomes: Float32Array.of(random.next(), random.next()) }));
      return measurePower(noise, [0, 1]);
    });
    for (const power of ofNoise) {
      const areas = power.rows.map(({ mean }) => mean);
      expect(areas.toSorted((a, b) => a - b)).toEqual(areas);
      expect(powerTable(power, 'two')).toHaveLength(1 + areas.length + 2);
    }
    const explained = ofNoise.flatMap(({ fitted }) => fitted.map((one) => one.explained));
    expect(explained.reduce((sum, one) => sum + one, 0) / explained.length).toBeLessThan(0);
    const power = measurePower(train, [0, 1]);
    expect(power.fitted.at(-1)!.explained).toBeGreaterThan(0.7);
  });

  test('[R17] chooses a model after good feedback and avoids it after bad', async () => {
    const { router, hearNews, SERVED } = await load();
    // No model is perfect: otherwise feedback could not lift another above it.
    const data = models(200).map((one) => ({ ...one, outcomes: [one.outcomes[0]!, 0.8] }));
    const train: Contestant['train'] = (...all) => router.trainLinear(all.flat(), 2, SERVED.numBuckets);
    const news = hearNews({ name: 'linear', train }, data);
    expect(news.before).toBeLessThan(0.9);
    expect(news.numGood).toBeGreaterThan(0);
    expect(news.numBad).toBeGreaterThan(0);
    // As many neutral words leave it about where it was.
    expect(Math.abs(news.afterNeither - news.before)).toBeLessThan(0.3);
  });
});
