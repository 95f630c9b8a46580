/** Fitted on held-out answers of a model of 1.1 billion parameters; `docs/quality.md` has the calibration error. */
const SLOPE = 3;
const OFFSET = 1;

/** Probability that an answer is right, by the mean log-probability of its tokens (Platt scaling). */
export const confidenceOf = (meanLogprob: number): number => 1 / (1 + Math.exp(-(SLOPE * meanLogprob + OFFSET)));
