import { describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import type { LearnedSampling } from '../../memory/schemas/policy.ts';
import { learnSampling, type SampledAnswer } from './learn-sampling.ts';

const SETTINGS = [
  { temperature: 0.7, topP: 0.9, rate: 0.55 },
  { temperature: 1, topP: 1, rate: 0.5 },
  { temperature: 0.2, topP: 0.9, rate: 0.8 },
];
const NUM_SEEDS = 40;

/** Thumbs up with the probability `rate` of the setting, otherwise thumbs down. */
function answersOf(seed: number, count = 200, settings = SETTINGS): SampledAnswer[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, (_, i) => {
    const { temperature, topP, rate } = settings[Math.floor(random.next() * settings.length)]!;
    return { candidate: 'small', temperature, topP, quality: Number(random.next() < rate), group: `conversation ${i}` };
  });
}

/** The same ratings, assigned to other answers. */
function shuffleRatings(answers: readonly SampledAnswer[], seed: number): SampledAnswer[] {
  const random = createRandom(seed);
  const qualities = answers.map(({ quality }) => quality);
  for (let i = qualities.length - 1; i > 0; i--) {
    const j = Math.floor(random.next() * (i + 1));
    [qualities[i], qualities[j]] = [qualities[j]!, qualities[i]!];
  }
  return answers.map((answer, i) => ({ ...answer, quality: qualities[i]! }));
}

/** Mean rating of new answers with the learned setting minus that with the default setting. */
function heldOutGain(learned: readonly LearnedSampling[], seed: number): number {
  const fresh = answersOf(10_000 + seed, 3000);
  const meanOf = (temperature: number): number => {
    const some = fresh.filter((one) => one.temperature === temperature);
    return some.reduce((sum, { quality }) => sum + quality, 0) / some.length;
  };
  return meanOf(learned[0]?.temperature ?? 0.7) - meanOf(0.7);
}

describe('[RT8] sampling settings are learned from ratings', () => {
  test('chooses a better setting that helps on new requests; shuffled ratings choose none', () => {
    const gains: number[] = [];
    const shuffledGains: number[] = [];
    let numShuffled = 0;
    for (let seed = 1; seed <= NUM_SEEDS; seed++) {
      const answers = answersOf(seed);
      const learned = learnSampling(answers, ['small'], []);
      const shuffled = learnSampling(shuffleRatings(answers, seed), ['small'], []);
      for (const { temperature } of learned) expect(temperature).toBe(0.2);
      gains.push(heldOutGain(learned, seed));
      shuffledGains.push(heldOutGain(shuffled, seed));
      numShuffled += shuffled.length;
    }
    const mean = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0) / values.length;
    expect(mean(gains)).toBeGreaterThan(0.15);
    expect(Math.abs(mean(shuffledGains))).toBeLessThan(0.02);
    expect(numShuffled).toBeLessThanOrEqual(2); // of 40: one-sided at 5 %
  });

  test('reports the number of conversations and the rating of the other settings', () => {
    const [learned] = learnSampling(answersOf(1), ['small', 'large'], []);
    const sampled = answersOf(1).filter(({ temperature }) => temperature === 0.2);
    expect(learned).toMatchObject({ candidate: 'small', temperature: 0.2, topP: 0.9, numSamples: sampled.length });
    expect(learned!.quality - learned!.otherQuality).toBeGreaterThan(0.1);
  });

  test('counts one conversation with many ratings once', () => {
    const one = answersOf(1).map((answer) => ({ ...answer, group: `conversation ${answer.temperature}` }));
    expect(learnSampling(one, ['small'], [])).toEqual([]);
  });

  test('chooses none from too few conversations', () => {
    expect(learnSampling(answersOf(1, 12), ['small'], [])).toEqual([]);
  });

  test('keeps active settings while no others are used, and drops them when others do better', () => {
    const serving = learnSampling(answersOf(1), ['small'], []);
    const alone = answersOf(2, 200, [SETTINGS[2]!]);
    expect(learnSampling(alone, ['small'], serving)).toEqual(serving);
    const worse = [{ ...SETTINGS[2]!, rate: 0.2 }, { ...SETTINGS[0]!, rate: 0.8 }, SETTINGS[1]!];
    expect(learnSampling(answersOf(3, 300, worse), ['small'], serving)).toMatchObject([{ temperature: 0.7 }]);
    const even = [{ ...SETTINGS[2]!, rate: 0.1 }, SETTINGS[0]!, { ...SETTINGS[1]!, rate: 0.55 }];
    expect(learnSampling(answersOf(4, 300, even), ['small'], serving)).toEqual([]);
  });
});
