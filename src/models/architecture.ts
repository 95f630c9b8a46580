import type { DecoderStep } from './decoder-step.ts';
import type { RopeVariant } from './rope.ts';
import type { ModelFile } from './types.ts';
import type { WeightLoader } from './weight-loader.ts';

/** A family of models with one `general.architecture`. */
export interface Architecture {
  readonly name: string;
  /** Whether tokens see only earlier ones; a file with another setting is rejected. */
  readonly isCausal: boolean;
  /** Whether files have experts; default 'never'. A file with another setting is rejected. */
  readonly experts?: 'never' | 'maybe' | 'always';
  /** Whether sizes may differ between layers; default false. A file with such sizes is rejected. */
  readonly hasLayerSizes?: boolean;
  /** Reads and checks the metadata, but no tensor data. */
  open(file: ModelFile): Decoder;
}

/** A configured model whose weights are not yet loaded. */
export interface Decoder {
  /** The rotations of its layers; a step computes each once. */
  readonly ropes: readonly RopeVariant[];
  /** Bytes of the recurrent layers' state of one sequence. Default 0. */
  readonly stateBytes?: number;
  /** Further buffers of a step by name: values per row. Default none. */
  readonly scratch?: Readonly<Record<string, number>>;
  /** Requests every weight from `loader`, always in the same order, and returns the forward pass. */
  bind(loader: WeightLoader): Forward;
}

/** Records one step, from token ids to logits and hidden states. */
export type Forward = (step: DecoderStep) => void;
