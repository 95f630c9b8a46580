import type { Adapter, LowRankFactors } from '../../adapters/types.ts';

/** One token of an answer as the LM head saw it. */
export interface TokenSample {
  /** The final hidden state, normalized, that this token was predicted from. */
  readonly hidden: Float32Array;
  /** The token of the answer. */
  readonly label: number;
  /** Some of the likeliest tokens, none twice, and their logits. */
  readonly ids: ArrayLike<number>;
  readonly logits: ArrayLike<number>;
  /** The label's own logit; needed where `ids` does not have it. */
  readonly labelLogit?: number | null;
  /** log Σ exp over the whole vocabulary; without it the tokens given count as all there are. */
  readonly logSumExp?: number | null;
  /** The logits have this adapter in them, as it is now; default false: they are the model's own. */
  readonly isAdapted?: boolean;
}

export interface AdaptFeedback {
  /** From 0 (rejected) to 1 (accepted). */
  readonly quality: number;
}

export interface AdaptReport {
  readonly isApplied: boolean;
  readonly numTokens: number;
  /** Why nothing was learned; null where something was. */
  readonly skipped: 'neutral' | 'no tokens' | null;
}

export interface UpdateReport {
  /** Raised by one where something changed. */
  readonly version: number;
  readonly numTokens: number;
  /** Before it was shortened. */
  readonly gradientNorm: number;
  /** Of everything that is added to the head: ‖scale · B · A‖. */
  readonly norm: number;
}

export interface MicroLoraStats {
  readonly version: number;
  /** Calls of `adapt` that taught something, and those that did not. */
  readonly numAdapted: number;
  readonly numSkipped: number;
  readonly numUpdates: number;
  /** Tokens whose gradients wait for `applyUpdates`. */
  readonly numPendingTokens: number;
  readonly norm: number;
  readonly rank: number;
  readonly numParameters: number;
}

/** What a `MicroLora` has learned, as plain numbers. */
export interface MicroLoraState {
  readonly parameters: Float32Array;
  readonly version: number;
}

/** A rank 1–2 addition to the LM head that learns from single answers: no cached K or V depends on it. */
export interface MicroLora {
  /** A (rank × hiddenDim), then B (vocabSize × rank). */
  readonly numParameters: number;
  /** Collects gradients of the answer's tokens: likelier where the quality is above a half, less likely below. */
  adapt(samples: readonly TokenSample[], feedback: AdaptFeedback): AdaptReport;
  /** What is added to the logits of a hidden state. */
  forward(hidden: Float32Array): Float32Array;
  forwardAdd(hidden: Float32Array, logits: Float32Array): void;
  /** Takes one step with what was collected; default rate 0.02. */
  applyUpdates(learningRate?: number): UpdateReport;
  parameters(): Float32Array;
  reset(): void;
  stats(): MicroLoraStats;
  state(): MicroLoraState;
  /** An adapter of this version, for the engine; `hash` makes its content hash. */
  snapshot(hash: (factors: readonly LowRankFactors[]) => string): Adapter;
}
