import type { SystemState } from './features/state-features.ts';

/** A configured destination of requests. */
export interface Candidate {
  readonly id: string;
  readonly kind: 'local' | 'adapter' | 'remote';
  /** In the user's currency; 0 for local models. */
  readonly pricePerToken: number;
  /** Used until latencies are measured. */
  readonly latencyMs: number;
}

/** Terms of a text by bucket, in rising order, of unit length together. */
export interface SparseVector {
  readonly indices: Int32Array;
  readonly values: Float32Array;
}

/** A request in numbers: what every policy decides on. */
export interface RouteInput {
  /** f32[NUM_FEATURES]: query, embedding, retrieval and system, one block behind the other. */
  readonly features: Float32Array;
  /** The 32 numbers of the query block. */
  readonly query: Float32Array;
  readonly terms: SparseVector;
  /** Unit vector, for neighbours. */
  readonly embedding: Float32Array;
  /** Unit sentence vector, along the directions in which the requests differ most; undefined: not computed. */
  readonly vector?: Float32Array | undefined;
  /** Tokens the request is expected to cost, for prices. */
  readonly numTokens: number;
  /** For what time costs; default: as configured. */
  readonly system?: SystemState | undefined;
}

/** A request with the known outcomes of candidates. */
export interface RouteExample {
  readonly input: RouteInput;
  /** By candidate, quality from 0 to 1; NaN where it was never tried. */
  readonly outcomes: Float32Array;
  /** By candidate, the probability with which it was tried; 1 where it always is (shadow runs). */
  readonly propensities?: Float32Array;
  /** Subject, user or day; never on both sides of a split. */
  readonly group: string;
}

/** Outcome of one decision. */
export interface RouteFeedback {
  readonly input: RouteInput;
  readonly candidate: number;
  /** From 0 to 1. */
  readonly quality: number;
  /** Probability of the choice, above 0. */
  readonly propensity: number;
}

export interface RouteReason {
  /** `best` by estimate, `safe-default` for low confidence, `unfamiliar` for a request unlike all rated ones, `explored` on purpose, `fixed`. */
  readonly kind: 'best' | 'safe-default' | 'unfamiliar' | 'explored' | 'fixed';
  readonly detail: string;
  /** Positions of the examples it was judged by, nearest first. */
  readonly neighbours?: readonly { readonly index: number; readonly similarity: number }[];
}

export interface RouteDecision {
  readonly candidate: number;
  /** By candidate: estimated quality less what time and money take away. */
  readonly scores: Float64Array;
  /** By candidate, from 0 to 1. */
  readonly qualities: Float64Array;
  readonly confidence: number;
  readonly why: RouteReason;
}

/** Names and arrays only, so that it can be stored. */
export interface PolicyState {
  readonly kind: string;
  readonly numbers: Readonly<Record<string, number>>;
  readonly arrays: Readonly<Record<string, Float32Array | Int32Array>>;
  readonly texts?: Readonly<Record<string, readonly string[]>>;
}

/** A way to choose a candidate. */
export interface RoutePolicy {
  readonly name: string;
  decide(input: RouteInput): RouteDecision;
  /** Learns from one outcome; a policy that cannot learn does nothing. */
  update(feedback: RouteFeedback): void;
  save(): PolicyState;
}

export const NUM_FEATURES = 128;
export const NUM_QUERY_FEATURES = 32;
/** Routes by intent have dozens; more than this is a mistake in a configuration. */
export const MAX_CANDIDATES = 256;
