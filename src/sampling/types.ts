import type { TopLogits } from '../core/top-logits.ts';

/** How the next token is chosen. All fields set; `resolveGenerateParams` fills defaults. */
export interface SamplingParams {
  /** 0 is greedy. */
  readonly temperature: number;
  /** 0 is off. */
  readonly topK: number;
  /** 1 is off. */
  readonly topP: number;
  /** 0 is off. */
  readonly minP: number;
  /** 1 is off. */
  readonly typicalP: number;
  /** 1 is off. */
  readonly repetitionPenalty: number;
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  /** How many of the last tokens the penalties look at; 0 is none, -1 is all. */
  readonly penaltyWindow: number;
  /** Added to a token's logit. */
  readonly logitBias: ReadonlyMap<number, number>;
  /** null: a fresh random seed per request. */
  readonly seed: number | null;
  /** How many alternatives to report per token; null: no logprobs at all. */
  readonly topLogprobs: number | null;
}

/** A token and the logarithm of its probability. */
export interface TokenLogprob {
  readonly tokenId: number;
  readonly logprob: number;
}

/** A token that was chosen, and how likely it was. */
export interface SampledToken {
  readonly tokenId: number;
  /** log P of the chosen token under the model's own distribution: before bias, penalties, truncation and temperature; null unless asked. */
  readonly logprob: number | null;
  /** The most likely tokens, best first; empty unless asked. */
  readonly top: readonly TokenLogprob[];
}

export interface Sampler {
  /** How many of the best logits `sample` wants beside the row; 0 or left out: none. */
  readonly numCandidates?: number;
  /**
   * Chooses from `logits` (left unchanged); `history` is prompt and generated ids. Throws `bad_logits` on NaN. With `top`, the
   * best of these same logits, most of them are never read; the token is the same.
   */
  sample(logits: Float32Array, history: readonly number[], top?: TopLogits): SampledToken;
}
