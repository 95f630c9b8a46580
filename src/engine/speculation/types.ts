/** Where a draft comes from. */
export const DRAFT_SOURCES = ['grammar', 'prediction', 'lookup', 'learned', 'model'] as const;
export type DraftSourceName = (typeof DRAFT_SOURCES)[number];

/** Guessed next tokens of a sequence. */
export interface Draft {
  readonly source: DraftSourceName;
  readonly tokens: readonly number[];
  /** How many tokens of context the guess rests on; acceptance is estimated apart for weak and strong guesses. */
  readonly evidence: number;
}

/** Guesses the next tokens of one sequence. A wrong guess costs time, never correctness. */
export interface DraftSource {
  /** Guesses what follows `tokens`, at most `maxTokens`; null: no guess. `tokens` only grows between calls. */
  propose(tokens: readonly number[], maxTokens: number): Draft | null;
}

/** Totals of one source since loading. */
export interface DraftCounts {
  /** Tokens sent to the model for verification, and those of them that it would have generated itself. */
  readonly numProposed: number;
  readonly numAccepted: number;
}

/** Counters of all sources, at zero. */
export function countDrafts(): Record<DraftSourceName, { numProposed: number; numAccepted: number }> {
  const zeros = DRAFT_SOURCES.map((name) => [name, { numProposed: 0, numAccepted: 0 }]);
  return Object.fromEntries(zeros) as ReturnType<typeof countDrafts>;
}
