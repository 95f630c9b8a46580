import type { Prompt } from '../prompt.ts';
import type { ResolvedMemoryWish } from './memory-wish.ts';
import type { Routing, RouteChoice } from '../routing/types.ts';
import type { PackedSource } from '../../memory/search/pack.ts';
import type { EmbeddedText } from '../../memory/search/ask.ts';
import type { SearchCandidate } from '../../memory/search/search.ts';
import type { NearRecord } from '../../memory/types.ts';
import type { SerializedError } from '../../core/errors.ts';

/** A request that the memory shall know of. */
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
  /** Null: nothing is put into the prompt. */
  readonly wish: ResolvedMemoryWish | null;
  /** Whether somebody will choose who answers, and wants to know what the question is near to. Default false. */
  readonly isRouted?: boolean;
  /** Nearest-neighbour query of the router. Default: none. */
  readonly near?: RouteNear | null;
}

/** The settings that are learned. */
export interface Sampling {
  readonly temperature: number;
  readonly topP: number;
}

export type RouteNear = NonNullable<ReturnType<Routing['nearQuery']>>;

/** The candidate that answered a request without a named model. */
export interface ServedCall {
  readonly model: string;
  readonly choice: RouteChoice;
}

/** Memory lookup before a request. */
export interface Recalled {
  readonly prompt: Prompt;
  readonly sources: readonly PackedSource[];
  readonly embedded: EmbeddedText | null;
  /** Of what was found, the nearest first. */
  readonly similarities: readonly number[];
  /** Texts of the sources, by id. */
  readonly texts: ReadonlyMap<string, string>;
  /** Search candidates, including those not in the prompt. */
  readonly candidates: readonly SearchCandidate[];
  /** Result of the router's query; null: no query, or it failed. */
  readonly near: readonly NearRecord[] | null;
  readonly waitMs: number;
  readonly embeddingMs: number;
  readonly retrievalMs: number;
  readonly nearMs: number;
}

/** How a request ended. */
export interface CallOutcome {
  /** Generated text, possibly incomplete. */
  readonly text: string;
  readonly numPromptTokens: number;
  readonly numOutputTokens: number;
  /** Null: there was no token. */
  readonly ttftMs: number | null;
  readonly generationMs: number;
  /** Of the engine; null: it did not say. */
  readonly queueMs: number | null;
  readonly promptMs: number | null;
  readonly error: SerializedError | null;
  /** Null: the model that was named. */
  readonly served?: ServedCall | null;
}
