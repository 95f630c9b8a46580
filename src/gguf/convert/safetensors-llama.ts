import { choiceOption, optional, resolveOptions, stringOption } from '../../core/options.ts';
import type { SafetensorsFile } from '../safetensors.ts';
import type { MetadataEntry } from '../types.ts';
import type { GgufToWrite } from '../writer.ts';
import { openCheckpointTensors } from './checkpoint-tensors.ts';
import { convertTensor, type FloatTensor, writableTypes } from './float-tensor.ts';
import { type HfLlamaConfig, readHfLlamaConfig, type RopeStretch } from './hf-config.ts';
import { convertHfTokenizer } from './hf-tokenizer.ts';
import { llamaEntries } from './llama-metadata.ts';
import type { ConvertOptions } from './llama2c.ts';
import { pairAdjacent } from './pair-adjacent.ts';

/** The parts of a Hugging Face checkpoint, with parsed JSON files. */
export interface HfCheckpoint {
  readonly config: unknown;
  /** One or more shards. They must stay open until the result is written. */
  readonly files: readonly SafetensorsFile[];
  readonly tokenizerJson?: unknown;
  /** The bytes of a SentencePiece tokenizer.model, used without a tokenizer.json. */
  readonly tokenizerModel?: Uint8Array;
  /** tokenizer_config.json: the chat template and whether BOS is added. */
  readonly tokenizerConfig?: unknown;
}

/** Options of a Llama conversion; every field has a default. */
export interface HfConvertOptions extends ConvertOptions {
  /** `tokenizer.ggml.pre` if the splitting rule in tokenizer.json is unknown; default null: detect. */
  preTokenizer: string | null;
}

type HeadCount = 'numHeads' | 'numKvHeads';
/** Tensor of a layer: its name in the checkpoint, its name in GGUF, its [columns, rows], and whose heads to reorder. */
type LayerRow = readonly [string, string, (config: HfLlamaConfig['shape']) => readonly number[], HeadCount?];

const LAYER_TENSORS: readonly LayerRow[] = [
  ['input_layernorm', 'attn_norm', (s) => [s.embeddingLength]],
  ['self_attn.q_proj', 'attn_q', (s) => [s.embeddingLength, s.numHeads * s.headLength], 'numHeads'],
  ['self_attn.k_proj', 'attn_k', (s) => [s.embeddingLength, s.numKvHeads * s.headLength], 'numKvHeads'],
  ['self_attn.v_proj', 'attn_v', (s) => [s.embeddingLength, s.numKvHeads * s.headLength]],
  ['self_attn.o_proj', 'attn_output', (s) => [s.numHeads * s.headLength, s.embeddingLength]],
  ['post_attention_layernorm', 'ffn_norm', (s) => [s.embeddingLength]],
  ['mlp.gate_proj', 'ffn_gate', (s) => [s.embeddingLength, s.ffnLength]],
  ['mlp.down_proj', 'ffn_down', (s) => [s.ffnLength, s.embeddingLength]],
  ['mlp.up_proj', 'ffn_up', (s) => [s.embeddingLength, s.ffnLength]],
];
/** Tables in older checkpoints, which every runtime computes itself. */
const IGNORED = /\.rotary_emb\.inv_freq$/;

/** Converts a Hugging Face Llama or Mistral checkpoint to a Llama GGUF. */
export function convertSafetensorsLlama(checkpoint: HfCheckpoint, options?: Partial<HfConvertOptions>): GgufToWrite {
  const resolved = resolveOptions<HfConvertOptions>('safetensors conversion', options, {
    type: choiceOption('Q8_0', writableTypes),
    name: stringOption('model'),
    preTokenizer: optional(stringOption('default')),
  });
  const config = readHfLlamaConfig(checkpoint.config, resolved.name);
  const tensors = mapTensors(checkpoint.files, config);
  return {
    metadata: [
      ...llamaEntries(config.shape, resolved.type),
      ...linearRopeEntries(config.linearRopeFactor),
      ...convertHfTokenizer(checkpoint, config, resolved.preTokenizer),
    ],
    tensors: tensors.map((tensor) => convertTensor(tensor, resolved.type)),
  };
}

function linearRopeEntries(factor: number): MetadataEntry[] {
  if (factor === 1) return [];
  return [
    { key: 'llama.rope.scaling.type', type: 'string', value: 'linear' },
    { key: 'llama.rope.scaling.factor', type: 'f32', value: Math.fround(factor) },
  ];
}

function mapTensors(files: readonly SafetensorsFile[], { shape, isTied, ropeStretch }: HfLlamaConfig): FloatTensor[] {
  const checkpoint = openCheckpointTensors(files, IGNORED);
  const take = (from: string, name: string, dims: readonly number[], numHeads = 0): FloatTensor => {
    const tensor = checkpoint.take(from, name, dims);
    return numHeads > 0 ? { ...tensor, readRows: pairAdjacent(tensor.readRows, dims, shape.headLength) } : tensor;
  };
  const tensors = [take('model.embed_tokens.weight', 'token_embd.weight', [shape.embeddingLength, shape.vocabSize])];
  for (let layer = 0; layer < shape.numLayers; layer++) {
    for (const [from, to, dims, heads] of LAYER_TENSORS) {
      const numHeads = heads === undefined ? 0 : shape[heads];
      tensors.push(take(`model.layers.${layer}.${from}.weight`, `blk.${layer}.${to}.weight`, dims(shape), numHeads));
    }
  }
  tensors.push(take('model.norm.weight', 'output_norm.weight', [shape.embeddingLength]));
  // A tied checkpoint may repeat the embedding under this name.
  if (isTied) checkpoint.drop('lm_head.weight');
  else tensors.push(take('lm_head.weight', 'output.weight', [shape.embeddingLength, shape.vocabSize]));
  if (ropeStretch !== null) tensors.push(ropeFactors(ropeStretch, shape.headLength, shape.ropeBase));
  checkpoint.rejectUnused('Llama');
  return tensors;
}

/** Divisors of the rotation frequencies: 1 for short waves, `factor` for long ones, a smooth step between. */
function ropeFactors(stretch: RopeStretch, headLength: number, ropeBase: number): FloatTensor {
  const { factor, lowFreqFactor, highFreqFactor, originalContext } = stretch;
  const factors = Float32Array.from({ length: headLength / 2 }, (_, i) => {
    const waveLength = 2 * Math.PI * ropeBase ** ((2 * i) / headLength);
    const smooth = (originalContext / waveLength - lowFreqFactor) / (highFreqFactor - lowFreqFactor);
    const clamped = Math.min(1, Math.max(0, smooth));
    return 1 / ((1 - clamped) / factor + clamped);
  });
  return { name: 'rope_freqs.weight', dims: [factors.length], readRows: (_firstRow, out) => out.set(factors) };
}
