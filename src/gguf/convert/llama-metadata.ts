import type { TensorTypeName } from '../../core/tensor-type.ts';
import type { MetadataEntry } from '../types.ts';

/** The dimensions of a Llama model, as GGUF names them. */
export interface LlamaShape {
  readonly name: string;
  readonly contextLength: number;
  readonly embeddingLength: number;
  readonly numLayers: number;
  readonly ffnLength: number;
  readonly numHeads: number;
  readonly numKvHeads: number;
  readonly headLength: number;
  readonly vocabSize: number;
  readonly rmsEpsilon: number;
  readonly ropeBase: number;
}

/** `general.file_type` by the type of most tensors; only informative. */
export const FILE_TYPES: Readonly<Record<TensorTypeName, number>> = {
  F32: 0,
  F16: 1,
  BF16: 32,
  Q4_0: 2,
  Q4_1: 3,
  Q5_0: 8,
  Q5_1: 9,
  Q8_0: 7,
  Q2_K: 10,
  Q3_K: 11,
  Q4_K: 14,
  Q5_K: 16,
  Q6_K: 18,
  Q8_K: 1024, // llama.cpp has no number for it; this one means that the type was guessed
  IQ1_S: 24,
  IQ1_M: 31,
  IQ2_XXS: 19,
  IQ2_XS: 20,
  IQ2_S: 28,
  IQ3_XXS: 23,
  IQ3_S: 26,
  IQ4_NL: 25,
  IQ4_XS: 30,
  TQ1_0: 36,
  TQ2_0: 37,
  Q1_0: 1024,
  Q2_0: 1024,
  MXFP4: 38,
  NVFP4: 1024,
};

/** The general and architecture keys of a Llama file. */
export function llamaEntries(shape: LlamaShape, type: TensorTypeName): MetadataEntry[] {
  const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
  return [
    { key: 'general.architecture', type: 'string', value: 'llama' },
    { key: 'general.name', type: 'string', value: shape.name },
    u32('general.file_type', FILE_TYPES[type]),
    u32('general.quantization_version', 2),
    u32('llama.context_length', shape.contextLength),
    u32('llama.embedding_length', shape.embeddingLength),
    u32('llama.block_count', shape.numLayers),
    u32('llama.feed_forward_length', shape.ffnLength),
    u32('llama.attention.head_count', shape.numHeads),
    u32('llama.attention.head_count_kv', shape.numKvHeads),
    u32('llama.attention.key_length', shape.headLength),
    u32('llama.attention.value_length', shape.headLength),
    u32('llama.rope.dimension_count', shape.headLength),
    u32('llama.vocab_size', shape.vocabSize),
    { key: 'llama.attention.layer_norm_rms_epsilon', type: 'f32', value: Math.fround(shape.rmsEpsilon) },
    { key: 'llama.rope.freq_base', type: 'f32', value: Math.fround(shape.ropeBase) },
  ];
}

/** `tokenizer.ggml.token_type` values. */
export const tokenTypes = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;
