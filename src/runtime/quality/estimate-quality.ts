import type { QualityEstimate, QualityParts } from '../../memory/schemas/audit.ts';
import { textSignals } from './text-signals.ts';

/** An answer and what is known about it without a person. */
export interface ScoredAnswer {
  readonly text: string;
  /** Mean log-probability of its tokens; null: not known, as for engines elsewhere. */
  readonly meanLogprob: number | null;
  /** Whether a requested format was kept, with a value that says something; null: none was requested. */
  readonly isValid: boolean | null;
  /** Parts that need other work: embeddings, the reasoning bank, further samples. */
  readonly others?: Omit<QualityParts, 'schema' | 'likelihood' | 'diversity' | 'repetition'>;
}

type Weight = readonly [weight: number, mean: number];

/**
 * A logistic regression on half of the questions of `bench/agents/quality.ts`: weight and mean of each part. Diversity had no weight there;
 * for the other parts there is no data.
 */
const MODEL: { readonly bias: number; readonly parts: Readonly<Partial<Record<keyof QualityParts, Weight>>> } = {
  bias: -1.32,
  parts: { likelihood: [2.42, 0.428], coherence: [2.93, 0.548] },
};

/** An answer in the wrong format is useless to its reader, however likely its words are. */
const MAX_INVALID = 0.05;
/** From here on an answer is not doubted for its repetition: lists and tables repeat words. */
const FREE_REPETITION = 0.7;

const round = (value: number): number => Math.round(Math.min(1, Math.max(0, value)) * 1000) / 1000;

/** The share of answers like this one that were right; parts without a weight are shown and do not count. */
export function estimateQuality({ text, meanLogprob, isValid, others = {} }: ScoredAnswer): QualityEstimate {
  const { numWords, repetition, diversity } = textSignals(text);
  const parts: QualityParts = {
    ...(isValid === null ? {} : { schema: isValid ? 1 : 0 }),
    ...(meanLogprob === null ? {} : { likelihood: round(Math.exp(meanLogprob)) }),
    ...(numWords === 0 ? {} : { diversity: round(diversity), repetition: round(repetition) }),
    ...Object.fromEntries(
      Object.entries(others).flatMap(([name, value]) => (value === undefined ? [] : [[name, round(value)]])),
    ),
  };
  // Nothing said, no call made.
  if (text.trim() === '') return { quality: 0, parts };
  let logit = MODEL.bias;
  for (const [name, [weight, mean]] of Object.entries(MODEL.parts)) {
    // A missing part counts as an average one.
    logit += weight * ((parts[name as keyof QualityParts] ?? mean) - mean);
  }
  const quality = (1 / (1 + Math.exp(-logit))) * Math.min(1, repetition / FREE_REPETITION);
  return { quality: round(isValid === false ? Math.min(quality, MAX_INVALID) : quality), parts };
}
