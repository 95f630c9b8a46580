import type { RouteExplanation } from '../../learning/router/index.ts';
import type { EmbeddedText } from '../../memory/memory.ts';
import type { RouteState } from '../../memory/schemas/trajectory.ts';
import type { NearestQuery, NearRecord } from '../../memory/types.ts';
import type { RouteCandidate, RouteConfig } from './route-config.ts';

/** The router's view of a request. */
export interface RouteQuestion {
  /** Messages, oldest first; the last one is to be answered. */
  readonly turns: readonly string[];
  /** Null: the text could not be embedded, so no patterns are searched. */
  readonly embedded: EmbeddedText | null;
  /** Results of `nearQuery`; null: not searched. Default null. */
  readonly near?: readonly NearRecord[] | null;
  /** Similarities of recalled records, nearest first. */
  readonly similarities: readonly number[];
  /** Whether only a local model can answer it. */
  readonly isLocalOnly: boolean;
  /** Load of this machine, 0 to 1. */
  readonly load: number;
  /** Sampling of the request; `isOpen`: the router may replace it. Default: the library's default, open. */
  readonly sampling?: { readonly temperature: number; readonly topP: number; readonly isOpen: boolean };
  /** Estimated tokens of the prompt. Default: estimated from the turns. */
  readonly numPromptTokens?: number;
  /** Limit of the answer; null: none set. Default null. */
  readonly maxTokens?: number | null;
  /** By candidate. Default: unknown. */
  readonly models?: readonly CandidateModel[];
}

/** Report of a candidate's loaded model about a request. */
export interface CandidateModel {
  /** Maximum tokens of prompt and answer together; null: unknown. */
  readonly maxContext: number | null;
  /** Tokens of the prompt, counted by its tokenizer; null: not counted. */
  readonly promptTokens: number | null;
  /** Prompt tokens in its prefix cache. */
  readonly cachedTokens: number;
}

/** How an answer is sampled, and where the settings come from. */
export interface SamplingChoice {
  readonly temperature: number;
  readonly topP: number;
  /** `request`: the client set one of them; `learned`: from ratings; `default`: neither. */
  readonly source: 'request' | 'learned' | 'default';
  /** Rated conversations behind learned settings; otherwise 0. */
  readonly numSamples: number;
}

/** `unfamiliar`: unlike all rated requests, so the safe default answers; `fallback`: the chosen candidate could not answer. */
export type ChoiceKind = 'best' | 'safe-default' | 'unfamiliar' | 'explored' | 'fixed' | 'fallback';

export interface RouteChoice {
  readonly candidate: RouteCandidate;
  /** By candidate: the probability that none is better. */
  readonly probs: readonly number[];
  readonly confidence: number;
  readonly why: { readonly kind: ChoiceKind; readonly detail: string };
  /** Probability of the choice; null after a fallback. */
  readonly propensity: number | null;
  /** Time to read the router policy. */
  readonly policyMs: number;
  readonly routingMs: number;
  /** Version of the router; 0: none is trained. */
  readonly version: number;
  /** Patterns that influenced the decision. */
  readonly patternIds: readonly string[];
  /** The smallest of 256, 512, 1024 … tokens that holds prompt and answer. */
  readonly contextSize: number;
  readonly sampling: SamplingChoice;
  /** The router's inputs besides the text. */
  readonly state: RouteState;
}

/** The decision, as reported with an answer. */
export interface RouteSummary {
  readonly candidate: string;
  readonly reason: ChoiceKind;
  /** Probability that no candidate is better. */
  readonly confidence: number;
  /** The smallest of 256, 512, 1024 … tokens that holds the prompt and its answer. */
  readonly contextSize: number;
  readonly sampling: SamplingChoice;
}

/** A candidate's part of a decision; figures that require a router are null without one. */
export interface ExplainedCandidate {
  readonly id: string;
  readonly kind: RouteCandidate['kind'];
  readonly quality: number | null;
  /** Quality minus latency and price. */
  readonly score: number | null;
  /** How much of the quality differences between requests is used, 0 to 1. */
  readonly trust: number | null;
  /** Expected price of this request, in the currency of the configuration. */
  readonly cost: number;
  /** Expected time to the first token: measured or configured, for the uncached part of the prompt. */
  readonly latencyMs: number;
  /** Tokens of the prompt in its prefix cache; 0 unless the time to the first token counts (`weights.perSecond`). */
  readonly cachedTokens: number;
  /** False: it cannot answer this request, or was unreachable a moment ago. */
  readonly isAble: boolean;
}

export interface RouteInputs {
  /** Tokens of the prompt, counted by the chosen candidate or else estimated. */
  readonly promptTokens: number;
  /** Similarities of recalled records, nearest first. */
  readonly similarities: readonly number[];
  /** Load of this machine, 0 to 1. */
  readonly load: number;
  /** Whether only a local model may answer. */
  readonly isLocalOnly: boolean;
  /** Origin of the sentence vector; null: the router reads none, or it came too late. */
  readonly vector: 'recall' | 'encoder' | null;
}

/** A decision with its reasons. */
export interface ExplainedRoute extends Omit<RouteExplanation, 'reason' | 'candidates'> {
  readonly reason: ChoiceKind;
  readonly candidates: readonly ExplainedCandidate[];
  /** Answers below `minConfidence`. */
  readonly safeDefault: string;
  readonly minConfidence: number;
  /** The router's inputs besides the text and the candidates. */
  readonly inputs: RouteInputs;
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

/** Chooses a candidate for each request. */
export interface Routing {
  readonly config: RouteConfig;
  /** Computes the features of a request that will be decided soon. */
  foresee(tenant: string, turns: readonly string[]): void;
  /** The neighbours `decide` needs, to be searched together with the recall; null: none. */
  nearQuery(tenant: string): Pick<NearestQuery, 'kinds' | 'k'> | null;
  decide(tenant: string, question: RouteQuestion): Promise<RouteChoice>;
  /** The decision without exploration, with its reasons. */
  explain(tenant: string, question: RouteQuestion): Promise<ExplainedRoute>;
  /** The safe default after a failure before the first token; null: it failed itself, or cannot answer. */
  fallBack(choice: RouteChoice, question: RouteQuestion, reason: string): RouteChoice | null;
  /** Reports the time to the first token of a candidate; null: it failed. */
  note(candidateId: string, ttftMs: number | null): void;
  /** Tenants with recent requests. */
  tenants(): readonly string[];
}
