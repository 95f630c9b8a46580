import type { Candidates } from './candidates.ts';
import type { SamplingParams } from './types.ts';

interface Step {
  readonly name: string;
  /** Whether it has an effect with these parameters; otherwise it is left out of the chain. */
  isActive(params: SamplingParams): boolean;
  apply(candidates: Candidates, params: SamplingParams, history: readonly number[]): void;
}

/** Changes logits of the whole vocabulary, position = id. */
export interface ShapeStep extends Step {
  readonly kind: 'shape';
  /** The ids whose logits it may change, possibly with duplicates; it reads no others. */
  names(params: SamplingParams, history: readonly number[]): Iterable<number>;
}

/** Removes candidates. Not run when greedy. */
export interface TruncateStep extends Step {
  readonly kind: 'truncate';
}

/** One step of the sampling chain. */
export type SamplerStep = ShapeStep | TruncateStep;
