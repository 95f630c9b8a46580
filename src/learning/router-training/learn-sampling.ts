import type { LearnedSampling } from '../../memory/schemas/policy.ts';
import { type Sample, sampleOf, welchP } from '../reasoning-bank/welch.ts';

/** A rated answer with its sampling settings. */
export interface SampledAnswer {
  readonly candidate: string;
  readonly temperature: number;
  readonly topP: number;
  /** 0 to 1. */
  readonly quality: number;
  /** Conversation; its ratings count once per setting. */
  readonly group: string;
}

/** Minimum conversations per half, with a setting and with the others. */
const MIN_CONVERSATIONS = 5;
const MAX_P = 0.05;
/** Settings are rounded to 0.05. */
const STEPS = 20;

const roundSetting = (value: number): number => Math.round(value * STEPS) / STEPS;
const keyOf = ({ temperature, topP }: Pick<SampledAnswer, 'temperature' | 'topP'>): string =>
  `${roundSetting(temperature)} ${roundSetting(topP)}`;

/**
 * Returns the settings of each candidate that were rated best in the older half of the conversations, if the newer half confirms that
 * they are better than all others together. Active settings stay until the newer half shows the opposite: once in use, others are rare.
 */
export function learnSampling(
  answers: readonly SampledAnswer[],
  candidates: readonly string[],
  serving: readonly LearnedSampling[],
): LearnedSampling[] {
  return candidates.flatMap((candidate) => {
    const halves = splitByConversation(answers.filter((one) => one.candidate === candidate));
    const best = bestSetting(halves.older);
    const active = serving.find((one) => one.candidate === candidate);
    if (best !== null) {
      const { inside, others } = compare(halves.newer, best);
      if (isSurelyHigher(inside, others)) {
        const [temperature, topP] = best.split(' ').map(Number) as [number, number];
        const numSamples = inside.count + compare(halves.older, best).inside.count;
        return [{ candidate, temperature, topP, quality: inside.mean, otherQuality: others.mean, numSamples }];
      }
    }
    if (active === undefined) return [];
    const { inside, others } = compare(halves.newer, keyOf(active));
    return isSurelyHigher(others, inside) ? [] : [active];
  });
}

/** By setting, the mean quality of each conversation. */
type Ratings = ReadonlyMap<string, readonly number[]>;

/** No conversation is in both halves. */
function splitByConversation(answers: readonly SampledAnswer[]): { readonly older: Ratings; readonly newer: Ratings } {
  const groups = new Map<string, Map<string, number[]>>();
  for (const answer of answers) {
    const group = groups.get(answer.group) ?? new Map<string, number[]>();
    groups.set(answer.group, group);
    pushTo(group, keyOf(answer), answer.quality);
  }
  const rate = (part: readonly ReadonlyMap<string, number[]>[]): Ratings => {
    const ratings = new Map<string, number[]>();
    for (const group of part) for (const [key, qualities] of group) pushTo(ratings, key, sampleOf(qualities).mean);
    return ratings;
  };
  const all = [...groups.values()];
  const middle = Math.floor(all.length / 2);
  return { older: rate(all.slice(0, middle)), newer: rate(all.slice(middle)) };
}

function pushTo(lists: Map<string, number[]>, key: string, value: number): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

function bestSetting(ratings: Ratings): string | null {
  let best: { readonly key: string; readonly mean: number } | null = null;
  for (const [key, values] of ratings) {
    const { count, mean } = sampleOf(values);
    if (count >= MIN_CONVERSATIONS && (best === null || mean > best.mean)) best = { key, mean };
  }
  return best?.key ?? null;
}

function compare(ratings: Ratings, key: string): { readonly inside: Sample; readonly others: Sample } {
  const others = [...ratings].flatMap(([other, values]) => (other === key ? [] : values));
  return { inside: sampleOf(ratings.get(key) ?? []), others: sampleOf(others) };
}

const isSurelyHigher = (a: Sample, b: Sample): boolean =>
  Math.min(a.count, b.count) >= MIN_CONVERSATIONS && a.mean > b.mean && welchP(a, b) < MAX_P;

/** Settings and figures, for the reason of a version. */
export const describeSampling = (sampling: readonly LearnedSampling[]): string =>
  sampling
    .map(
      ({ candidate, temperature, topP, quality, otherQuality, numSamples }) =>
        `${candidate} at temperature ${temperature} and top-p ${topP}, rated ${quality.toFixed(2)} against ${otherQuality.toFixed(2)} in ${numSamples} conversations`,
    )
    .join('; ');

/** Whether two lists have the same settings; figures may differ. */
export const isSameSampling = (a: readonly LearnedSampling[], b: readonly LearnedSampling[]): boolean => {
  const settingsOf = (list: readonly LearnedSampling[]): string =>
    list.map((one) => `${one.candidate} ${keyOf(one)}`).join('\n');
  return settingsOf(a) === settingsOf(b);
};
