import type { TopLogits } from '../core/top-logits.ts';

/** How the next token is chosen. All fields set; `resolveGenerateParams` fills in defaults. */
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
  /** How many of the last tokens the penalties consider; 0 is none, -1 is all. */
  readonly penaltyWindow: number;
  /** Added to a token's logit. */
  readonly logitBias: ReadonlyMap<number, number>;
  /** Tokens that are not generated while prompt and answer have fewer than `length` tokens. */
  readonly endBan?: { readonly ids: readonly number[]; readonly length: number };
  /** null: a fresh random seed per request. */
  readonly seed: number | null;
  /** Alternatives to report per token; null: no log-probabilities. */
  readonly topLogprobs: number | null;
}

/** A token and its log-probability. */
export interface TokenLogprob {
  readonly tokenId: number;
  readonly logprob: number;
}

/** A chosen token and its log-probability. */
export interface SampledToken {
  readonly tokenId: number;
  /** log P under the model's own distribution, before bias, penalties, truncation and temperature; null unless requested. */
  readonly logprob: number | null;
  /** The most likely tokens, best first; empty unless requested. */
  readonly top: readonly TokenLogprob[];
}

export interface Sampler {
  /** How many top logits `sample` wants along with the row; 0 or absent: none. */
  readonly numCandidates?: number;
  /**
   * Chooses from `logits`, which stay unchanged; `history` is prompt and generated ids. Throws `bad_logits` on NaN.
   * With `top`, the top logits of the same row, most of the row is never read; the token is the same.
   */
  sample(logits: Float32Array, history: readonly number[], top?: TopLogits): SampledToken;
  /** Whether `sample` would read nothing but `top` of a row of so many logits; absent: it always reads the row. */
  isDecidedBy?(top: TopLogits, numLogits: number): boolean;
  /** Used instead of `sample` where present: the token may come from another thread, and later. `logits` are read before it returns. */
  sampleAside?(logits: Float32Array, history: readonly number[]): SampledToken | Promise<SampledToken>;
  /** Ends its work in another thread. */
  close?(): void;
  /** Tokens that a grammar probably requires next, at most `maxTokens`; absent: no grammar. Changes nothing. */
  draft?(maxTokens: number): readonly number[];
}
