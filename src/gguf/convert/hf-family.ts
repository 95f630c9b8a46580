import type { MetadataEntry } from '../types.ts';
import type { Json } from './hf-config.ts';
import type { HfDecoderShape } from './hf-decoder-shape.ts';
import type { FloatHfTensor, HfTensor } from './hf-tensor.ts';

/** A module of every layer: its name in the checkpoint, its name in GGUF, and its [columns, rows]. */
export type HfModule = readonly [from: string, to: string, dims: (shape: HfDecoderShape) => readonly number[]];

/** A checkpoint's configuration, as a family's functions get it. */
export interface HfModel {
  readonly config: Json;
  readonly shape: HfDecoderShape;
}

/** How checkpoints of one kind become GGUF files. */
export interface HfFamily {
  readonly modelTypes: readonly string[];
  /** Whether a checkpoint of these types belongs here; default: all do. */
  readonly isFor?: (config: Json) => boolean;
  readonly architecture: string;
  /** Fills in the names that all families share where config.json has others or none. */
  readonly normalize?: (config: Json) => Json;
  readonly modules: readonly HfModule[];
  /** GGUF names of modules with a bias; others have none. Default none. */
  readonly biased?: readonly string[];
  /** Further tensors of a layer, relative to it. */
  readonly layer?: (model: HfModel, layer: number) => readonly HfTensor[];
  /** Changes the list of tensors outside layers: the embedding, the last norm and the output. */
  readonly ends?: (ends: readonly FloatHfTensor[], model: HfModel) => readonly HfTensor[];
  /** Default `model.norm`. */
  readonly outputNorm?: string;
  /** Metadata key of the epsilon, and its name in config.json. */
  readonly epsilon: readonly [key: string, name: string];
  /** Whether the checkpoint stores the weights of the norms in `modules` and of the last one minus one. Default false. */
  readonly hasShiftedNorms?: boolean;
  /** GGUF rotates adjacent values, the checkpoint halves: rows of q and k are reordered. Default false. */
  readonly pairsNeighbours?: boolean;
  /** Whether the output is the embedding if config.json does not say; default false. */
  readonly isTied?: boolean;
  /** Whether the checkpoint has layers after the last one that guess further tokens; they are omitted. Default false. */
  readonly hasGuessingLayers?: boolean;
  /** Names of tensors that no runtime needs. Default none. */
  readonly ignored?: RegExp;
  /** Accepted values of settings that change the arithmetic. */
  readonly settings: Readonly<Record<string, readonly unknown[]>>;
  /** `quantization_config.quant_method` of accepted quantized checkpoints; default none. */
  readonly quantization?: readonly string[];
  /** Keys under the architecture's prefix; they replace those of all families. */
  readonly entries?: (model: HfModel) => readonly MetadataEntry[];
  /** If the splitting rule alone does not identify it. */
  readonly preTokenizer?: string;
}

export const f32 = (key: string, value: number): MetadataEntry => ({ key, type: 'f32', value: Math.fround(value) });
export const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
export const bool = (key: string, value: boolean): MetadataEntry => ({ key, type: 'bool', value });
