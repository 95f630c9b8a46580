import type { CallOutcome as CallEnding } from '../../chat/tools/types.ts';
import type { Prompt } from '../prompt.ts';
import type { Opinion } from '../quality/types.ts';
import type { ReflectionReport } from '../reflection/types.ts';
import type { ResolvedMemoryWish } from './memory-wish.ts';
import type { Routing, RouteChoice } from '../routing/types.ts';
import type { PackedContext, PackedSource } from '../../memory/search/pack.ts';
import type { EmbeddedText } from '../../memory/search/embed-text.ts';
import type { SearchCandidate } from '../../memory/search/search.ts';
import type { NearRecord } from '../../memory/types.ts';
import type { SerializedError } from '../../core/errors.ts';

/** A request to recall for and to record. */
export interface RememberedCall {
  readonly tenant: string;
  /** A UUID. */
  readonly requestId: string;
  readonly model: string;
  readonly session: string | null;
  readonly user: string | null;
  /** The first adapter that the request names; null: none. Default null. */
  readonly adapter?: string | null;
  readonly prompt: Prompt;
  /** Whether the prompt continues a conversation that it does not contain: nothing can be trained on it. Default false. */
  readonly hasHistory?: boolean;
  /** Sampling settings, unless a router chooses others. Default: unknown. */
  readonly sampling?: Sampling;
  /** Null: no recall. */
  readonly wish: ResolvedMemoryWish | null;
  /** Whether the user's corrections are recalled. Default true. */
  readonly corrections?: boolean;
  /** Whether a router will choose the model. Default false. */
  readonly isRouted?: boolean;
  /** The neighbours that the router needs. Default: none. */
  readonly near?: RouteNear | null;
  /** Further answers for the estimate of its quality. Default: none. */
  readonly opinion?: Opinion | null;
  /** Extracts facts with the answering model, for sessions that remember. Default: none, facts wait for a later turn. */
  readonly generateJson?: GenerateJson | null;
  /** The model that answers. Default: unknown; tokens are estimated at four characters each. */
  readonly reader?: PromptReader | null;
}

/** Generates JSON of a schema in the background, after all requests. */
export type GenerateJson = (
  prompt: Prompt,
  schema: object,
  options: { readonly maxTokens: number; readonly signal: AbortSignal },
) => Promise<string>;

/** How the answering model reads a prompt. */
export interface PromptReader {
  countTokens(text: string): number;
  /** Tokens by which a prompt and its answer exceed the context; 0: they fit. */
  excessTokens(prompt: Prompt): Promise<number>;
}

/** The result of recall and its part in the prompt. */
export interface RecallReport extends Pick<PackedContext, 'sources' | 'numTokens' | 'numLeftOut'> {
  /** `used`: there are sources; `nothing_fitted`: the budget or the context had no room for any of the texts found. */
  readonly outcome: 'used' | 'nothing_found' | 'nothing_fitted';
  /** As requested, or less where the context has no room for it. */
  readonly tokenBudget: number;
}

/** The learned sampling settings. */
export interface Sampling {
  readonly temperature: number;
  readonly topP: number;
}

export type RouteNear = NonNullable<ReturnType<Routing['nearQuery']>>;

/** The router's choice. */
export interface ServedCall {
  readonly model: string;
  readonly choice: RouteChoice;
}

/** The result of recall. */
export interface Recalled {
  readonly prompt: Prompt;
  /** Without the recalled correction: trained on this, the weights learn the answer instead of copying it. */
  readonly trainingPrompt: Prompt;
  readonly sources: readonly PackedSource[];
  /** Null: no recall. */
  readonly recall: RecallReport | null;
  readonly embedded: EmbeddedText | null;
  /** Whether `embedded` is of the question alone, without messages that it refers to. */
  readonly isQuestion: boolean;
  /** Similarities of the results, the highest first. */
  readonly similarities: readonly number[];
  /** Texts of the sources by id. */
  readonly texts: ReadonlyMap<string, string>;
  /** All texts that the search ranked. */
  readonly candidates: readonly SearchCandidate[];
  /** The neighbours for the router; null: none requested, or the search failed. */
  readonly near: readonly NearRecord[] | null;
  readonly waitMs: number;
  readonly embeddingMs: number;
  readonly retrievalMs: number;
  readonly nearMs: number;
}

/** The arguments of a tool call, and how the call ended; null: the answer ended first. */
export interface RecordedCall {
  readonly arguments: string;
  readonly outcome: CallEnding | null;
}

/** How a request ended. */
export interface CallOutcome {
  /** The text, possibly incomplete. */
  readonly text: string;
  /** Whether the model ended the text itself, not a limit, a stop string or a client. Default false. */
  readonly isComplete?: boolean;
  readonly numPromptTokens: number;
  readonly numOutputTokens: number;
  /** Null: no token was generated. */
  readonly ttftMs: number | null;
  readonly generationMs: number;
  /** Measured by the engine; null: unknown. */
  readonly queueMs: number | null;
  readonly promptMs: number | null;
  readonly error: SerializedError | null;
  /** Mean log-probability of its tokens. Default: unknown. */
  readonly meanLogprob?: number | null;
  /** Whether JSON was required. Default false. */
  readonly isJson?: boolean;
  /** Its tool calls. Default: none. */
  readonly calls?: readonly RecordedCall[];
  /** Its attempts. Default: reflection was off. */
  readonly reflection?: ReflectionReport | null;
  /** Null: no router was involved. */
  readonly served?: ServedCall | null;
}
