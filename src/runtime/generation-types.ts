import type { CallOutcome } from '../chat/tools/types.ts';
import type { ToolCall } from '../chat/types.ts';
import type { SampledToken } from '../sampling/types.ts';

/** Why a generation ended: a stop token or stop string, `maxTokens` reached, or with calls of tools. */
export type FinishReason = 'stop' | 'length' | 'tool_calls';

/** How many tokens a call read and made. */
export interface Usage {
  readonly promptTokens: number;
  /** Tokens of the prompt that were known from earlier calls and not computed again. */
  readonly cachedTokens: number;
  /** Tokens in `tokenIds`; the stop token that ends an answer is not counted. */
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** Those of `completionTokens` that the model thought with, where its template tells thinking from answers. */
  readonly reasoningTokens: number;
}

/** How long the parts of a call took, in milliseconds. */
export interface Timings {
  /** From the call to the first token, waiting for other requests included. */
  readonly firstTokenMs: number;
  /** Waiting until the first step of this request. */
  readonly queuedMs: number;
  /** Computing the prompt and the first token. */
  readonly promptMs: number;
  /** From the first token to the last. */
  readonly generateMs: number;
  /** Of the tokens that were computed, known ones not counted. null where nothing was measured. */
  readonly promptTokensPerSecond: number | null;
  readonly tokensPerSecond: number | null;
}

/** How far an answer has come, with each of its tokens. */
export interface TokenProgress {
  /** From the call to this token. */
  readonly elapsedMs: number;
  /** Waiting until the first step of this request. */
  readonly queuedMs: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

/** What is known when a generation has ended. */
export interface GenerateSummary {
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  readonly timings: Timings;
  /** The seed that was really used: with it the same call gives the same text. */
  readonly seed: number;
  /** The stop string that was found; null when none was. */
  readonly stopString: string | null;
}

/** A finished answer. */
export interface GenerateResult extends GenerateSummary {
  /** What is said; of a chat neither the thinking nor the calls. */
  readonly text: string;
  /** What was thought before and between; empty where nothing was, or where the template does not set it apart. */
  readonly reasoning: string;
  /** Calls of the tools that were given, in order. The arguments of the last one may have been cut off at `maxTokens`. */
  readonly toolCalls: readonly ToolCall[];
  readonly tokenIds: readonly number[];
  /** One entry a token when `topLogprobs` was asked for, else null. */
  readonly logprobs: readonly SampledToken[] | null;
}

/** A piece of a call. */
export interface ToolCallDelta {
  /** Which call of the answer. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
  /** Whether this is the first piece of the call. */
  readonly isFirst: boolean;
  /** More of the JSON text. */
  readonly arguments: string;
  /** How the call ended, in its last piece; null before. */
  readonly outcome: CallOutcome | null;
}

interface ChunkContent {
  /** May be empty: bytes of an unfinished character and text that may begin a stop string are held back. */
  readonly text: string;
  /** Comes before `text`. */
  readonly reasoning: string;
  /** Come after `text`. */
  readonly toolCalls: readonly ToolCallDelta[];
  readonly tokenIds: readonly number[];
  readonly logprobs: readonly SampledToken[] | null;
  /** The tokens that produced `text`, when `topLogprobs` was set, else null. They may come later than in `logprobs`. */
  readonly textLogprobs: readonly SampledToken[] | null;
}

/** A piece of an answer. All but the last have the `finishReason` null; the last carries the summary. */
export type GenerateChunk = (ChunkContent & { readonly finishReason: null }) | (ChunkContent & GenerateSummary);
