import type { RouteExplanation } from '../../learning/router/index.ts';
import type { EmbeddedText } from '../../memory/memory.ts';
import type { RouteState } from '../../memory/schemas/trajectory.ts';
import type { NearestQuery, NearRecord } from '../../memory/types.ts';
import type { RouteCandidate, RouteConfig } from './route-config.ts';

/** What is known of a request before anybody answers it. */
export interface RouteQuestion {
  /** What was said, oldest first; the last is what is to be answered. */
  readonly turns: readonly string[];
  /** Null: nothing could be embedded, and no pattern is near. */
  readonly embedded: EmbeddedText | null;
  /** What `nearQuery` asked for, as it was found; null: nobody looked, or could. Default null. */
  readonly near?: readonly NearRecord[] | null;
  /** Of what the memory found, the nearest first. */
  readonly similarities: readonly number[];
  /** Whether it asks for something that only a model of this machine can do. */
  readonly isLocalOnly: boolean;
  /** Of this machine, 0 to 1. */
  readonly load: number;
  /** What the request is sampled with unless something better is known. Default: the library's, which may be replaced. */
  readonly sampling?: { readonly temperature: number; readonly topP: number; readonly isOpen: boolean };
  /** Expected of the prompt. Default: of the turns. */
  readonly numPromptTokens?: number;
  /** The most the answer may have; null: not said. Default null. */
  readonly maxTokens?: number | null;
  /** By candidate. Default: nothing is known of them. */
  readonly models?: readonly CandidateModel[];
}

/** What the loaded model of a candidate says of a request. */
export interface CandidateModel {
  /** Most tokens of prompt and answer together; null: not known. */
  readonly maxContext: number | null;
}

/** How an answer is sampled, and who said so. */
export interface SamplingChoice {
  readonly temperature: number;
  readonly topP: number;
  /** `request`: the client set one of them. `default`: nobody did, and nothing better is known. */
  readonly source: 'request' | 'learned' | 'default';
  /** Rated conversations it was learned from. */
  readonly numSamples: number;
}

/** `fallback`: what was chosen could not answer. */
export type ChoiceKind = 'best' | 'safe-default' | 'explored' | 'fixed' | 'fallback';

export interface RouteChoice {
  readonly candidate: RouteCandidate;
  /** By candidate: how likely it is as good as any. */
  readonly probs: readonly number[];
  readonly confidence: number;
  readonly why: { readonly kind: ChoiceKind; readonly detail: string };
  /** With which it was drawn; null: it was not drawn, for what was could not answer. */
  readonly propensity: number | null;
  /** Until what was learned for the tenant was there. */
  readonly policyMs: number;
  readonly routingMs: number;
  /** Of the router that decided; 0: none is trained. */
  readonly version: number;
  /** Patterns that had a say. */
  readonly patternIds: readonly string[];
  /** The smallest of 256, 512, 1024 … tokens that holds the prompt and its answer. */
  readonly contextSize: number;
  readonly sampling: SamplingChoice;
  /** What the router saw beside the words. */
  readonly state: RouteState;
}

/** A decision as answers tell it. */
export interface RouteSummary extends Pick<RouteChoice, 'confidence' | 'contextSize' | 'sampling'> {
  readonly candidate: string;
  readonly reason: ChoiceKind;
}

/** What a decision knew of one candidate; null where no router is trained that could know it. */
export interface ExplainedCandidate {
  readonly id: string;
  readonly kind: RouteCandidate['kind'];
  readonly quality: number | null;
  /** Quality less what time and money take away. */
  readonly score: number | null;
  /** How far quality differences between requests are believed for it. */
  readonly trust: number | null;
  /** Expected price of this request, in the currency of the configuration. */
  readonly cost: number;
  /** Expected until the first token. */
  readonly latencyMs: number;
  /** False: it cannot do what is asked, or was down a moment ago. */
  readonly isAble: boolean;
}

/** A decision with all its reasons. */
export interface ExplainedRoute extends Omit<RouteExplanation, 'reason' | 'candidates'> {
  readonly reason: ChoiceKind;
  readonly candidates: readonly ExplainedCandidate[];
  /** Who answers when nobody is sure, */
  readonly safeDefault: string;
  /** which is below this confidence. */
  readonly minConfidence: number;
  /** Of the router; 0: none is trained. */
  readonly version: number;
  /** Of the router policy that says so: `ruvllm memory policy-rollback router` takes these. */
  readonly policyVersion: number;
  readonly contextSize: number;
  readonly sampling: SamplingChoice;
  readonly probs: readonly number[];
  /** How far patterns were heard, at most 0.3. */
  readonly patternShare: number;
  readonly patterns: readonly {
    readonly text: string;
    readonly similarity: number;
    readonly recommends: string | null;
  }[];
  readonly routingMs: number;
}

/** Chooses who answers. */
export interface Routing {
  readonly config: RouteConfig;
  /** A question that will be decided soon: what can be known of it without the memory is. */
  foresee(tenant: string, turns: readonly string[]): void;
  /** What `decide` will want to know of what is near the question, for whoever asks the memory something anyway; null: nothing. */
  nearQuery(tenant: string): Pick<NearestQuery, 'kinds' | 'k'> | null;
  decide(tenant: string, question: RouteQuestion): Promise<RouteChoice>;
  /** The same without drawing anything, and told in full. */
  explain(tenant: string, question: RouteQuestion): Promise<ExplainedRoute>;
  /** The safe default in place of a choice that failed before its first token; null: it was the safe default, or that cannot answer this. */
  fallBack(choice: RouteChoice, question: RouteQuestion, reason: string): RouteChoice | null;
  /** How a candidate did; `ttftMs` null: it could not be reached or broke. */
  note(candidateId: string, ttftMs: number | null): void;
  /** Tenants that were here lately. */
  tenants(): readonly string[];
}
