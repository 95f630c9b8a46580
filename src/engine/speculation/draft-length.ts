import type { StepCosts } from './step-costs.ts';

/** An expected gain below this is lost in the noise of the measurement. */
const MIN_GAIN = 1.03;

export interface LengthQuestion {
  /** Probability that a drafted token is accepted when those before it are. */
  readonly acceptance: number;
  readonly maxTokens: number;
  /** Rows of the step without this draft, and tokens that it will generate. */
  readonly numRows: number;
  readonly numTokens: number;
  readonly costs: StepCosts;
  /** Milliseconds that drafting one token takes; 0 for a lookup. */
  readonly msPerToken: number;
}

/** How many tokens to draft for the most tokens per second; 0: drafting does not pay. */
export function chooseDraftLength(question: LengthQuestion): number {
  const { acceptance, maxTokens, numRows, numTokens, costs, msPerToken } = question;
  const plainMs = costs.estimate(numRows);
  if (plainMs === null) return 0;
  let best = 0;
  let bestRate = (numTokens / plainMs) * MIN_GAIN;
  let expected = numTokens;
  let chance = 1;
  for (let length = 1; length <= maxTokens; length++) {
    chance *= acceptance;
    expected += chance;
    const rate = expected / (costs.estimate(numRows + length)! + length * msPerToken);
    if (rate <= bestRate) continue;
    best = length;
    bestRate = rate;
  }
  return best;
}
