import type { Draft } from './types.ts';

/** Observations are halved after about this many, so that an estimate follows a text that changes. */
const MEMORY = 24;
/** How many observations of its own sequence outweigh those of all. */
const SHARED_WEIGHT = 4;
/** Before any observation: a long match is mostly right, a short one seldom. */
const GUESSES = [0.3, 0.5, 0.7, 0.85] as const;

/** Hits and trials, both fading. */
interface Tally {
  hits: number;
  trials: number;
}

/** Estimates the probability that the next token of a draft is accepted, per source and strength of evidence. */
export interface Acceptance {
  estimate(draft: Pick<Draft, 'source' | 'evidence'>): number;
  /** The first `numHits` of `numTrials` tokens were right. */
  record(draft: Pick<Draft, 'source' | 'evidence'>, numHits: number, numTrials: number): void;
}

/** Strength of evidence: 2-3, 4-7, 8-15, 16 and more matching tokens. */
const levelOf = (evidence: number): number => Math.max(0, Math.min(3, Math.floor(Math.log2(evidence)) - 1));

/** `shared`: the estimates of all sequences, which a new sequence starts from. */
export function createAcceptance(shared: Acceptance | null): Acceptance {
  const tallies = new Map<string, Tally>();
  const keyOf = ({ source, evidence }: Pick<Draft, 'source' | 'evidence'>): string => `${source} ${levelOf(evidence)}`;
  return {
    estimate(draft) {
      const prior = shared?.estimate(draft) ?? GUESSES[levelOf(draft.evidence)]!;
      const { hits, trials } = tallies.get(keyOf(draft)) ?? { hits: 0, trials: 0 };
      return (hits + prior * SHARED_WEIGHT) / (trials + SHARED_WEIGHT);
    },
    record(draft, numHits, numTrials) {
      shared?.record(draft, numHits, numTrials);
      const key = keyOf(draft);
      const tally = tallies.get(key) ?? { hits: 0, trials: 0 };
      tallies.set(key, tally);
      tally.hits += numHits;
      tally.trials += numTrials;
      if (tally.trials <= MEMORY) return;
      tally.hits /= 2;
      tally.trials /= 2;
    },
  };
}
