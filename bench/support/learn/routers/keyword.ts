import { wordsOf } from '../../../../src/learning/router/features/hashed-terms.ts';
import type { Estimator } from '../../../../src/learning/router/estimator.ts';
import type { RouteExample } from '../../../../src/learning/router/types.ts';
import { meanOutcomes } from '../../../../src/learning/router/baselines/constant.ts';
import { textOf } from './bench-input.ts';

/** Words in fewer texts are chance. */
const MIN_TEXTS = 5;
const MAX_RULES = 400;

export interface KeywordRule {
  readonly word: string;
  readonly candidate: number;
  /** How much better than its mean the candidate does with the word, less one standard error. */
  readonly lift: number;
}

/** For each word the candidate it favours most, by its outcomes with the word; keeps the strongest. */
export function findKeywords(examples: readonly RouteExample[], means: Float32Array): KeywordRule[] {
  const sums = new Map<string, { count: Float64Array; sum: Float64Array }>();
  for (const { input, outcomes } of examples) {
    for (const word of new Set(wordsOf(textOf(input)))) {
      let entry = sums.get(word);
      if (entry === undefined) {
        entry = { count: new Float64Array(means.length), sum: new Float64Array(means.length) };
        sums.set(word, entry);
      }
      for (let i = 0; i < means.length; i++) {
        if (Number.isNaN(outcomes[i]!)) continue;
        entry.count[i]! += 1;
        entry.sum[i]! += outcomes[i]! - means[i]!;
      }
    }
  }
  const rules: KeywordRule[] = [];
  for (const [word, { count, sum }] of sums) {
    let best: KeywordRule | null = null;
    for (let i = 0; i < means.length; i++) {
      if (count[i]! < MIN_TEXTS) continue;
      const lift = Math.fround(sum[i]! / count[i]! - 0.5 / Math.sqrt(count[i]!)); // As it is stored.
      if (lift > 0 && (best === null || lift > best.lift)) best = { word, candidate: i, lift };
    }
    if (best !== null) rules.push(best);
  }
  return rules.sort((a, b) => b.lift - a.lift || (a.word < b.word ? -1 : 1)).slice(0, MAX_RULES);
}

/** Rules of the words in the text add up on top of each candidate's mean. */
export function createKeyword(rules: readonly KeywordRule[], means: Float32Array): Estimator {
  const byWord = new Map(rules.map((rule) => [rule.word, rule]));
  return {
    name: 'keyword',
    estimate(input) {
      const qualities = Float64Array.from(means);
      const matched: string[] = [];
      for (const word of new Set(wordsOf(textOf(input)))) {
        const rule = byWord.get(word);
        if (rule === undefined) continue;
        qualities[rule.candidate]! += rule.lift;
        matched.push(word);
      }
      return { qualities, confidence: NaN, why: { kind: 'best', detail: matched.join(' ') } };
    },
    update() {},
    save: () => ({
      kind: 'keyword',
      numbers: {},
      arrays: {
        means,
        candidates: Int32Array.from(rules, (rule) => rule.candidate),
        lifts: Float32Array.from(rules, (rule) => rule.lift),
      },
      texts: { words: rules.map((rule) => rule.word) },
    }),
  };
}

export const trainKeyword = (examples: readonly RouteExample[], numCandidates: number): Estimator => {
  const means = meanOutcomes(examples, numCandidates);
  return createKeyword(findKeywords(examples, means), means);
};
