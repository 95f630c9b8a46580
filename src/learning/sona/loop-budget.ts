/** How the time of a loop is dealt out: what was trained must be judged and remembered before it is up, so training ends earlier. */
export interface LoopBudget {
  /** When training must end. `judgingMs`: what the judges took under what serves; `gradientMs`: one gradient, null where none was measured. */
  trainingEndMs(costs: { readonly judgingMs: number; readonly gradientMs: number | null }): number;
  /** What remembering what mattered may take now. */
  fisherLimitMs(): number;
}

/** Of the limit, for writing a version and putting it to use. */
const WRITING_SHARE = 1 / 20;
/** Of the limit, at most, for remembering what mattered. */
const FISHER_SHARE = 1 / 4;
/** Losses under trained factors take a little longer than under what serves, which may be none. */
const JUDGING_MARGIN = 1.25;

export interface BudgetOptions {
  readonly limitMs: number;
  /** Samples that remembering takes, where there is time; and where there is not. */
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
      // Training stops before the example that would begin too late; the one before it may end later.
      return endMs - writingMs - fisherMs - JUDGING_MARGIN * judgingMs - (gradientMs ?? 0);
    },
    fisherLimitMs: () => Math.max(0, endMs - writingMs - now()),
  };
}
