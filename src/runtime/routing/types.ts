import type { RouteExplanation } from '../../learning/router/index.ts';
import type { EmbeddedText } from '../../memory/memory.ts';
import type { RouteState } from '../../memory/schemas/trajectory.ts';
import type { NearestQuery, NearRecord } from '../../memory/types.ts';
import type { RouteCandidate, RouteConfig } from './route-config.ts';

/** A request to be routed. */
export interface RouteQuestion {
  /** Texts of the turns, oldest first; the last one is to be answered. */
  readonly turns: readonly string[];
  /** Null: not embedded, so no patterns are used. */
  readonly embedded: EmbeddedText | null;
  /** The result of `nearQuery`; null: not searched, or the search failed. Default null. */
  readonly near?: readonly NearRecord[] | null;
  /** Similarities of recalled texts, the highest first. */
  readonly similarities: readonly number[];
  /** Whether only a local model can answer. */
  readonly isLocalOnly: boolean;
  /** Load of this machine, 0 to 1. */
  readonly load: number;
  /** Sampling of the request. Default: the library's defaults, which learned settings may replace. */
  readonly sampling?: { readonly temperature: number; readonly topP: number; readonly isOpen: boolean };
  /** Expected prompt tokens. Default: estimated from the turns. */
  readonly numPromptTokens?: number;
  /** Maximum tokens of the answer; null: no limit. Default null. */
  readonly maxTokens?: number | null;
  /** By candidate. Default: unknown. */
  readonly models?: readonly CandidateModel[];
}

/** Whether a candidate's model can answer a request. */
export interface CandidateModel {
  /** Context length; null: unknown. */
  readonly maxContext: number | null;
}

/** Sampling settings and their source. */
export interface SamplingChoice {
  readonly temperature: number;
  readonly topP: number;
  /** `request`: set by the client. `default`: neither set nor learned. */
  readonly source: 'request' | 'learned' | 'default';
  /** Rated requests that it was learned from. */
  readonly numSamples: number;
}

/** `fallback`: the chosen candidate failed. */
export type ChoiceKind = 'best' | 'safe-default' | 'explored' | 'fixed' | 'fallback';

export interface RouteChoice {
  readonly candidate: RouteCandidate;
  /** By candidate: the probability to be among the best. */
  readonly probs: readonly number[];
  readonly confidence: number;
  readonly why: { readonly kind: ChoiceKind; readonly detail: string };
  /** The probability of this choice; null: not drawn, because the drawn candidate could not answer. */
  readonly propensity: number | null;
  /** Milliseconds until the tenant's policy was loaded. */
  readonly policyMs: number;
  readonly routingMs: number;
  /** Version of the router; 0: none is trained. */
  readonly version: number;
  /** Patterns that influenced the choice. */
  readonly patternIds: readonly string[];
  /** The smallest of 256, 512, 1024 … tokens that holds prompt and answer. */
  readonly contextSize: number;
  readonly sampling: SamplingChoice;
  /** The router's inputs besides the text. */
  readonly state: RouteState;
}

/** A decision in a response. */
export interface RouteSummary extends Pick<RouteChoice, 'confidence' | 'contextSize' | 'sampling'> {
  readonly candidate: string;
  readonly reason: ChoiceKind;
}

/** A candidate in a decision; values are null without a trained router. */
export interface ExplainedCandidate {
  readonly id: string;
  readonly kind: RouteCandidate['kind'];
  readonly quality: number | null;
  /** Quality minus the cost of time and money. */
  readonly score: number | null;
  /** How much the predicted quality of single requests counts. */
  readonly trust: number | null;
  /** Expected price of this request, in the currency of the configuration. */
  readonly cost: number;
  /** Expected time to first token. */
  readonly latencyMs: number;
  /** False: it lacks a feature, or failed recently. */
  readonly isAble: boolean;
}

/** A decision with its reasons. */
export interface ExplainedRoute extends Omit<RouteExplanation, 'reason' | 'candidates'> {
  readonly reason: ChoiceKind;
  readonly candidates: readonly ExplainedCandidate[];
  /** The candidate below `minConfidence`. */
  readonly safeDefault: string;
  readonly minConfidence: number;
  /** Version of the router; 0: none is trained. */
  readonly version: number;
  /** Version of the router policy, as in `ruvllm memory policy-rollback router`. */
  readonly policyVersion: number;
  readonly contextSize: number;
  readonly sampling: SamplingChoice;
  readonly probs: readonly number[];
  /** Weight of the patterns, at most 0.3. */
  readonly patternShare: number;
  readonly patterns: readonly {
    readonly text: string;
    readonly similarity: number;
    readonly recommends: string | null;
  }[];
  readonly routingMs: number;
}

/** The router. */
export interface Routing {
  readonly config: RouteConfig;
  /** Prepares a decision as far as possible without the memory. */
  foresee(tenant: string, turns: readonly string[]): void;
  /** The neighbours that `decide` needs, so that one call to the memory can fetch them; null: none. */
  nearQuery(tenant: string): Pick<NearestQuery, 'kinds' | 'k'> | null;
  decide(tenant: string, question: RouteQuestion): Promise<RouteChoice>;
  /** The decision without exploration, with all reasons. */
  explain(tenant: string, question: RouteQuestion): Promise<ExplainedRoute>;
  /** The safe default after a candidate failed before its first token; null if it was the safe default, or that cannot answer. */
  fallBack(choice: RouteChoice, question: RouteQuestion, reason: string): RouteChoice | null;
  /** Records the time to first token of a candidate; null: it failed. */
  note(candidateId: string, ttftMs: number | null): void;
  /** Recent tenants. */
  tenants(): readonly string[];
}
