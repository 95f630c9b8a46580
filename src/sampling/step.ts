import type { Candidates } from './candidates.ts';
import type { SamplingParams } from './types.ts';

/** One link of the sampling chain. */
export interface SamplerStep {
  readonly name: string;
  /** `shape` changes logits of the whole vocabulary (position = id); `truncate` removes candidates. Greedy runs no truncation. */
  readonly kind: 'shape' | 'truncate';
  /** Whether these parameters make it do anything; otherwise it is left out of the chain. */
  isActive(params: SamplingParams): boolean;
  apply(candidates: Candidates, params: SamplingParams, history: readonly number[]): void;
}
