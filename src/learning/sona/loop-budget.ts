/** Divides the time of a loop: training ends early enough for evaluation and the Fisher information. */
export interface LoopBudget {
  /** When training must end. `judgingMs`: time of the evaluations before training; `gradientMs`: time of one gradient, null: not measured. */
  trainingEndMs(costs: { readonly judgingMs: number; readonly gradientMs: number | null }): number;
  /** Time left for the Fisher information. */
  fisherLimitMs(): number;
}

/** Share of the limit for writing and serving a version. */
const WRITING_SHARE = 1 / 20;
/** Largest share of the limit for the Fisher information. */
const FISHER_SHARE = 1 / 4;
/** Evaluation with an adapter takes a little longer than without. */
const JUDGING_MARGIN = 1.25;

export interface BudgetOptions {
  readonly limitMs: number;
  /** Fisher samples if there is time, and if there is not. */
  readonly fisherSamples: number;
  readonly minFisherSamples: number;
}

export function createLoopBudget(now: () => number, startMs: number, options: BudgetOptions): LoopBudget {
  const { limitMs, fisherSamples, minFisherSamples } = options;
  const endMs = startMs + limitMs;
  const writingMs = limitMs * WRITING_SHARE;
  return {
    trainingEndMs({ judgingMs, gradientMs }) {
      const most = limitMs * FISHER_SHARE;
      const fisherMs =
        gradientMs === null
          ? most
          : Math.max(Math.min(fisherSamples * gradientMs, most), minFisherSamples * gradientMs);
      // Training stops before an example that would start too late; the one before it may end later.
      return endMs - writingMs - fisherMs - JUDGING_MARGIN * judgingMs - (gradientMs ?? 0);
    },
    fisherLimitMs: () => Math.max(0, endMs - writingMs - now()),
  };
}
