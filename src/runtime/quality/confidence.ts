/** Fitted on half of the questions of `bench/agents/quality.ts`; `docs/quality.md` has the calibration error on the others. */
const SLOPE = 1.73;
const OFFSET = 0.4;

/** Probability that an answer is right, by the mean log-probability of its tokens (Platt scaling). */
export const confidenceOf = (meanLogprob: number): number => 1 / (1 + Math.exp(-(SLOPE * meanLogprob + OFFSET)));
