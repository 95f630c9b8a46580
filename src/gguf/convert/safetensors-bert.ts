import { choiceOption, resolveOptions, stringOption } from '../../core/options.ts';
import { invalidFile, unsupportedFile } from '../failures.ts';
import type { SafetensorsFile } from '../safetensors.ts';
import type { MetadataEntry } from '../types.ts';
import type { GgufToWrite } from '../writer.ts';
import { openCheckpointTensors } from './checkpoint-tensors.ts';
import { convertTensor, type FloatTensor, writableTypes } from './float-tensor.ts';
import { isJsonObject, type Json, positive, show, size } from './hf-config.ts';
import { convertWordPiece } from './hf-wordpiece.ts';
import { FILE_TYPES } from './llama-metadata.ts';
import type { ConvertOptions } from './llama2c.ts';
import type { HfCheckpoint } from './hf-checkpoint.ts';

/** `bert.pooling_type` by name: how token vectors become one. */
export const poolingTypes = { mean: 1, cls: 2, last: 3 } as const;

/** Options of a BERT conversion; every field has a default. */
export interface BertConvertOptions extends ConvertOptions {
  /** As in training; the checkpoint has it in a separate file. Default mean. */
  pooling: keyof typeof poolingTypes;
}

interface BertShape {
  readonly contextLength: number;
  readonly embeddingLength: number;
  readonly numLayers: number;
  readonly ffnLength: number;
  readonly numHeads: number;
  readonly vocabSize: number;
  readonly numTokenTypes: number;
  readonly epsilon: number;
}

/** Settings that change the arithmetic; only the values we implement are accepted. */
const REQUIRED_VALUES: readonly (readonly [string, readonly unknown[]])[] = [
  ['model_type', ['bert']],
  ['hidden_act', ['gelu', undefined]],
  ['position_embedding_type', ['absolute', undefined]],
  ['is_decoder', [false, undefined]],
  ['quantization_config', [undefined, null]],
];

/** Module of a layer: its name in the checkpoint, its name in GGUF, and its [columns, rows]. */
const LAYER_MODULES: readonly (readonly [string, string, (shape: BertShape) => readonly number[]])[] = [
  ['attention.self.query', 'attn_q', (s) => [s.embeddingLength, s.embeddingLength]],
  ['attention.self.key', 'attn_k', (s) => [s.embeddingLength, s.embeddingLength]],
  ['attention.self.value', 'attn_v', (s) => [s.embeddingLength, s.embeddingLength]],
  ['attention.output.dense', 'attn_output', (s) => [s.embeddingLength, s.embeddingLength]],
  ['attention.output.LayerNorm', 'attn_output_norm', (s) => [s.embeddingLength]],
  ['intermediate.dense', 'ffn_up', (s) => [s.embeddingLength, s.ffnLength]],
  ['output.dense', 'ffn_down', (s) => [s.ffnLength, s.embeddingLength]],
  ['output.LayerNorm', 'layer_output_norm', (s) => [s.embeddingLength]],
];
/** Position ids, and heads used only for training. */
const IGNORED = /(^|\.)(embeddings\.position_ids|pooler\..*)$|^cls\./;

/** Converts a Hugging Face BERT checkpoint, such as a small sentence encoder, to GGUF. */
export function convertSafetensorsBert(
  checkpoint: Omit<HfCheckpoint, 'tokenizerConfig'>,
  options?: Partial<BertConvertOptions>,
): GgufToWrite {
  const resolved = resolveOptions<BertConvertOptions>('BERT conversion', options, {
    type: choiceOption('F16', writableTypes),
    name: stringOption('model'),
    pooling: choiceOption('mean', Object.keys(poolingTypes) as (keyof typeof poolingTypes)[]),
  });
  const shape = readConfig(checkpoint.config);
  const tensors = mapTensors(checkpoint.files, shape);
  return {
    metadata: [...describe(shape, resolved), ...convertWordPiece(checkpoint.tokenizerJson, shape)],
    tensors: tensors.map((tensor) => convertTensor(tensor, resolved.type)),
  };
}

function readConfig(config: unknown): BertShape {
  if (!isJsonObject(config)) invalidFile('config.json is not an object');
  const json: Json = config;
  for (const [key, values] of REQUIRED_VALUES) {
    if (!values.includes(json[key])) unsupportedFile(`config.json: ${key} ${show(json[key])} is not supported`);
  }
  const embeddingLength = size(json, 'hidden_size');
  const numHeads = size(json, 'num_attention_heads');
  if (embeddingLength % (2 * numHeads) !== 0) {
    invalidFile(`config.json: hidden_size ${embeddingLength} does not divide into ${numHeads} heads of even size`);
  }
  return {
    embeddingLength,
    numHeads,
    contextLength: size(json, 'max_position_embeddings'),
    numLayers: size(json, 'num_hidden_layers'),
    ffnLength: size(json, 'intermediate_size'),
    vocabSize: size(json, 'vocab_size'),
    numTokenTypes: size(json, 'type_vocab_size', 2),
    epsilon: positive(json, 'layer_norm_eps', 1e-12),
  };
}

function describe(shape: BertShape, { name, type, pooling }: BertConvertOptions): MetadataEntry[] {
  const u32 = (key: string, value: number): MetadataEntry => ({ key, type: 'u32', value });
  return [
    { key: 'general.architecture', type: 'string', value: 'bert' },
    { key: 'general.name', type: 'string', value: name },
    u32('general.file_type', FILE_TYPES[type]),
    u32('general.quantization_version', 2),
    u32('bert.context_length', shape.contextLength),
    u32('bert.embedding_length', shape.embeddingLength),
    u32('bert.block_count', shape.numLayers),
    u32('bert.feed_forward_length', shape.ffnLength),
    u32('bert.attention.head_count', shape.numHeads),
    { key: 'bert.attention.layer_norm_epsilon', type: 'f32', value: Math.fround(shape.epsilon) },
    { key: 'bert.attention.causal', type: 'bool', value: false },
    u32('bert.pooling_type', poolingTypes[pooling]),
  ];
}

function mapTensors(files: readonly SafetensorsFile[], shape: BertShape): FloatTensor[] {
  const checkpoint = openCheckpointTensors(files, (name) => (IGNORED.test(name) ? null : name));
  // The prefix in checkpoints of models with a head.
  const prefix = checkpoint.has('bert.embeddings.word_embeddings.weight') ? 'bert.' : '';
  const dim = shape.embeddingLength;
  const take = (from: string, name: string, dims: readonly number[]): FloatTensor =>
    checkpoint.take(`${prefix}${from}`, name, dims);
  /** Weight and bias; the bias has one value per row of the weight. */
  const takeModule = (from: string, name: string, dims: readonly number[]): FloatTensor[] => [
    take(`${from}.weight`, `${name}.weight`, dims),
    take(`${from}.bias`, `${name}.bias`, [dims.at(-1)!]),
  ];
  const tensors = [
    take('embeddings.word_embeddings.weight', 'token_embd.weight', [dim, shape.vocabSize]),
    take('embeddings.token_type_embeddings.weight', 'token_types.weight', [dim, shape.numTokenTypes]),
    take('embeddings.position_embeddings.weight', 'position_embd.weight', [dim, shape.contextLength]),
    ...takeModule('embeddings.LayerNorm', 'token_embd_norm', [dim]),
  ];
  for (let layer = 0; layer < shape.numLayers; layer++) {
    for (const [from, to, dims] of LAYER_MODULES) {
      tensors.push(...takeModule(`encoder.layer.${layer}.${from}`, `blk.${layer}.${to}`, dims(shape)));
    }
  }
  checkpoint.rejectUnused('BERT');
  return tensors;
}
