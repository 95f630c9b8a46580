import type { DecoderStep } from './decoder-step.ts';
import type { RopeVariant } from './rope.ts';
import type { ModelFile } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

/** A family of models, as `general.architecture` names it. */
export interface Architecture {
  readonly name: string;
  /** Whether its tokens see only what came before them; a file that says otherwise is refused. */
  readonly isCausal: boolean;
  /** Reads and checks the metadata; touches no tensor data. */
  open(file: ModelFile): Decoder;
}

/** One model of a known architecture: configured, weights not yet loaded. */
export interface Decoder {
  /** The rotations its layers use; a step computes each once. */
  readonly ropes: readonly RopeVariant[];
  /** Asks `loader` for every weight, always in the same order, and returns the forward pass over them. */
  bind(loader: WeightLoader): Forward;
}

/** Records one step, from token ids to logits and hidden states. */
export type Forward = (step: DecoderStep) => void;
