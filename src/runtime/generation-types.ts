import type { RecallReport } from './memory/types.ts';
import type { CallOutcome } from '../chat/tools/types.ts';
import type { ToolCall } from '../chat/types.ts';
import type { SampledToken } from '../sampling/types.ts';
import type { ReflectionReport } from './reflection/types.ts';

/** Why a generation ended: a stop token or string, `maxTokens`, or tool calls. */
export type FinishReason = 'stop' | 'length' | 'tool_calls';

/** Token counts of a call. */
export interface Usage {
  readonly promptTokens: number;
  /** Prompt tokens from the prefix cache. */
  readonly cachedTokens: number;
  /** Tokens in `tokenIds`, and those of discarded attempts; the stop token that ends an answer is not counted. */
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** Tokens of `completionTokens` used for reasoning, if the template marks it. */
  readonly reasoningTokens: number;
  /** Drafted tokens that became part of the answer, and those that did not: see the option `speculation`. */
  readonly acceptedDraftTokens: number;
  readonly rejectedDraftTokens: number;
  /** Tokens of `completionTokens` in attempts that are not the answer; absent without the option `reflection`. */
  readonly discardedTokens?: number;
}

/** Durations of the parts of a call, in milliseconds. */
export interface Timings {
  /** Time to first token, including time in the queue. */
  readonly firstTokenMs: number;
  /** Time in the queue. */
  readonly queuedMs: number;
  /** Computing the prompt and the first token. */
  readonly promptMs: number;
  /** From the first token to the last. */
  readonly generateMs: number;
  /** Without cached tokens; null if nothing was computed. */
  readonly promptTokensPerSecond: number | null;
  readonly tokensPerSecond: number | null;
}

/** The progress of an answer at one of its tokens. */
export interface TokenProgress {
  /** From the call to this token. */
  readonly elapsedMs: number;
  /** Time in the queue. */
  readonly queuedMs: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Hashes of the prompt's pages, with the first token only; absent without the config `blockEvents`. */
  readonly promptBlocks?: readonly string[];
}

/** The summary of a finished generation. */
export interface GenerateSummary {
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  readonly timings: Timings;
  /** The seed that was used: with it, the same call gives the same text. */
  readonly seed: number;
  /** The stop string that ended the answer; null: none. */
  readonly stopString: string | null;
  /** Mean log-probability of the answer's tokens; absent if it was not computed: under a grammar, or by an engine elsewhere. */
  readonly meanLogprob?: number;
  /** The prompt's tokens, the first without a log-probability; absent without the option `promptLogprobs`. */
  readonly promptLogprobs?: readonly SampledToken[];
  /** Texts recalled by the option `memory`; absent without it. */
  readonly memory?: RecallReport;
  /** The attempts of the option `reflection`; absent without it. */
  readonly reflection?: ReflectionReport;
}

/** A finished answer. */
export interface GenerateResult extends GenerateSummary {
  /** The visible text, without reasoning and tool calls. */
  readonly text: string;
  /** The reasoning; empty if there is none or the template does not mark it. */
  readonly reasoning: string;
  /** Tool calls in order. `maxTokens` may cut off the arguments of the last one. */
  readonly toolCalls: readonly ToolCall[];
  readonly tokenIds: readonly number[];
  /** One entry per token if `topLogprobs` is set, otherwise null. */
  readonly logprobs: readonly SampledToken[] | null;
}

/** A piece of a tool call. */
export interface ToolCallDelta {
  /** Which call of the answer. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
  /** Whether this is the first piece of the call. */
  readonly isFirst: boolean;
  /** The next part of the JSON text. */
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
