import type { Candidates } from './candidates.ts';
import type { SamplingParams } from './types.ts';

interface Step {
  readonly name: string;
  /** Whether these parameters make it do anything; otherwise it is left out of the chain. */
  isActive(params: SamplingParams): boolean;
  apply(candidates: Candidates, params: SamplingParams, history: readonly number[]): void;
}

/** Changes logits; given the whole vocabulary, position = id. */
export interface ShapeStep extends Step {
  readonly kind: 'shape';
  /** The ids whose logits it may change, some perhaps twice; it reads no others. */
  names(params: SamplingParams, history: readonly number[]): Iterable<number>;
}

/** Removes candidates. Greedy runs none of these. */
export interface TruncateStep extends Step {
  readonly kind: 'truncate';
}

/** One link of the sampling chain. */
export type SamplerStep = ShapeStep | TruncateStep;
