import type { LowRankFactors } from '../../adapters/types.ts';

/** The likeliest tokens of a sample; the rest of the vocabulary counts as one. */
export const NUM_TOP = 64;

/** One token of an answer as the LM head saw it. */
export interface TokenSample {
  /** The final hidden state, normalized, that this token was predicted from. */
  readonly hidden: Float32Array;
  /** The token of the answer. */
  readonly label: number;
  /** The `NUM_TOP` likeliest tokens, best first, then others; none twice. With the logits that the model itself gives them. */
  readonly ids: ArrayLike<number>;
  readonly logits: ArrayLike<number>;
  /** Logit of the label; required if `ids` does not contain it. */
  readonly labelLogit?: number | null;
  /** log Σ exp over the whole vocabulary; without it `ids` count as the whole vocabulary. */
  readonly logSumExp?: number | null;
}

/** The size of a low-rank addition to the LM head. */
export interface MicroLoraConfig {
  readonly hiddenDim: number;
  readonly vocabSize: number;
  readonly rank: number;
  /** The addition is multiplied by alpha / rank. */
  readonly alpha: number;
}

export interface AdaptFeedback {
  /** From 0 (rejected) to 1 (accepted). */
  readonly quality: number;
}

export interface AdaptReport {
  readonly isApplied: boolean;
  readonly numTokens: number;
  /** Why nothing was learned; null if something was. */
  readonly skipped: 'neutral' | 'no tokens' | null;
}

export interface UpdateReport {
  /** One more than before if something changed. */
  readonly version: number;
  readonly numTokens: number;
  /** Before clipping. */
  readonly gradientNorm: number;
  /** ‖scale · B · A‖. */
  readonly norm: number;
}

/** The parameters of a `MicroLora`: A (rank × hiddenDim), then B (vocabSize × rank). */
export interface MicroLoraState {
  readonly parameters: Float32Array;
  readonly version: number;
}

/** A low-rank addition to the LM head that learns from single answers: no cached K or V depends on it. */
export interface MicroLora {
  /** Collects the answer's tokens: likelier if the quality is above 0.6, less likely below 0.4. */
  adapt(samples: readonly TokenSample[], feedback: AdaptFeedback): AdaptReport;
  /** Takes one step for the collected tokens; default rate 0.02. */
  applyUpdates(learningRate?: number): UpdateReport;
  state(): MicroLoraState;
  /** Copies of the factors, for an adapter. */
  factors(): readonly LowRankFactors[];
}
