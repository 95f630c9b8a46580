import { choiceOption, optional, resolveOptions, stringOption } from '../../core/options.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import { invalidFile, unsupportedFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import type { GgufToWrite } from '../writer.ts';
import { openCheckpointTensors } from './checkpoint-tensors.ts';
import { convertTensor, type FloatTensor, writableTypes } from './float-tensor.ts';
import { isJsonObject, type Json, positive, show } from './hf-config.ts';
import { checkSettings, type HfDecoderShape, readDecoderShape } from './hf-decoder-shape.ts';
import { HF_FAMILIES, type HfFamily } from './hf-families.ts';
import { convertRope } from './hf-rope.ts';
import { convertHfTokenizer } from './hf-tokenizer.ts';
import { FILE_TYPES } from './llama-metadata.ts';
import { pairAdjacent } from './pair-adjacent.ts';
import { convertSafetensorsBert } from './safetensors-bert.ts';
import { convertSafetensorsLlama, type HfCheckpoint, type HfConvertOptions } from './safetensors-llama.ts';

/** Converters with their own reader of config.json. */
const OTHERS: Readonly<Record<string, (checkpoint: HfCheckpoint, options: HfConvertOptions) => GgufToWrite>> = {
  llama: convertSafetensorsLlama,
  mistral: convertSafetensorsLlama,
  bert: (checkpoint, { type, name }) => convertSafetensorsBert(checkpoint, { type, name }),
};

/** `model_type` values of checkpoints that can be converted. */
export const convertibleModelTypes: readonly string[] = [
  ...Object.keys(OTHERS),
  ...HF_FAMILIES.flatMap(({ modelTypes }) => modelTypes),
];

const IGNORED = /\.rotary_emb\.inv_freq$/;

/** Converts a Hugging Face checkpoint of any supported kind, chosen by `model_type` in config.json. */
export function convertSafetensors(checkpoint: HfCheckpoint, options?: Partial<HfConvertOptions>): GgufToWrite {
  const resolved = resolveOptions<HfConvertOptions>('safetensors conversion', options, {
    type: choiceOption('Q8_0', writableTypes),
    name: stringOption('model'),
    preTokenizer: optional(stringOption('default')),
  });
  const { config } = checkpoint;
  if (!isJsonObject(config)) invalidFile('config.json is not an object');
  const modelType = String(config['model_type']);
  if (Object.hasOwn(OTHERS, modelType)) return OTHERS[modelType]!(checkpoint, resolved);
  const family = HF_FAMILIES.find(({ modelTypes }) => modelTypes.includes(modelType));
  if (family === undefined) {
    const supported = convertibleModelTypes.join(', ');
    unsupportedFile(`config.json: model_type ${show(config['model_type'])} is not supported (supported: ${supported})`);
  }
  return convertFamily(family, config, checkpoint, resolved);
}

function convertFamily(
  family: HfFamily,
  config: Json,
  checkpoint: HfCheckpoint,
  { type, name, preTokenizer }: HfConvertOptions,
): GgufToWrite {
  checkSettings(config, { ...family.settings, quantization_config: [] });
  const shape = readDecoderShape(config);
  const rope = convertRope(config, shape, family.architecture);
  const tensors = [...mapTensors(family, config, checkpoint, shape), ...rope.tensors];
  const target = { shape, bosId: shape.bosId, eosId: shape.eosId };
  return {
    metadata: [
      ...shapeEntries(family, config, shape, type, name),
      ...rope.entries,
      ...convertHfTokenizer(checkpoint, target, preTokenizer ?? family.preTokenizer ?? null),
    ],
    tensors: tensors.map((tensor) => convertTensor(tensor, type)),
  };
}

function shapeEntries(
  { architecture, epsilon, entries }: HfFamily,
  config: Json,
  shape: HfDecoderShape,
  type: TensorTypeName,
  name: string,
): MetadataEntry[] {
  const [epsilonKey, epsilonName] = epsilon;
  const u32 = (key: string, value: number): MetadataEntry => ({ key: `${architecture}.${key}`, type: 'u32', value });
  return [
    { key: 'general.architecture', type: 'string', value: architecture },
    { key: 'general.name', type: 'string', value: name },
    { key: 'general.file_type', type: 'u32', value: FILE_TYPES[type] },
    { key: 'general.quantization_version', type: 'u32', value: 2 },
    u32('context_length', shape.contextLength),
    u32('embedding_length', shape.embeddingLength),
    u32('block_count', shape.numLayers),
    u32('feed_forward_length', shape.ffnLength),
    u32('attention.head_count', shape.numHeads),
    u32('attention.head_count_kv', shape.numKvHeads),
    u32('attention.key_length', shape.headLength),
    u32('attention.value_length', shape.headLength),
    u32('vocab_size', shape.vocabSize),
    {
      key: `${architecture}.${epsilonKey}`,
      type: 'f32',
      value: Math.fround(positive(config, epsilonName)),
    },
    ...(entries?.(config, shape) ?? []).map((entry) => ({ ...entry, key: `${architecture}.${entry.key}` })),
  ];
}

function mapTensors(family: HfFamily, config: Json, { files }: HfCheckpoint, shape: HfDecoderShape): FloatTensor[] {
  const { modules, biased = [], normOffset = 0, outputNorm = 'model.norm' } = family;
  const source = openCheckpointTensors(files, IGNORED);
  const tensors: FloatTensor[] = [];
  /** Takes the weight of a module, and its bias if the family has one. */
  const take = (from: string, prefix: string, to: string, dims: readonly number[]): void => {
    const read = (part: string, dims: readonly number[]): FloatTensor => {
      const tensor = source.take(`${from}.${part}`, `${prefix}${to}.${part}`, dims);
      const isHeads = family.pairsNeighbours === true && (to === 'attn_q' || to === 'attn_k');
      if (isHeads) return { ...tensor, readRows: pairAdjacent(tensor.readRows, dims, shape.headLength) };
      return to.endsWith('norm') && normOffset !== 0 ? { ...tensor, readRows: shifted(tensor, normOffset) } : tensor;
    };
    tensors.push(read('weight', dims));
    if (biased.includes(to)) tensors.push(read('bias', dims.slice(-1)));
  };
  const vocabulary = [shape.embeddingLength, shape.vocabSize];
  take('model.embed_tokens', '', 'token_embd', vocabulary);
  for (let layer = 0; layer < shape.numLayers; layer++) {
    for (const [from, to, dims] of modules) take(`model.layers.${layer}.${from}`, `blk.${layer}.`, to, dims(shape));
  }
  take(outputNorm, '', 'output_norm', [shape.embeddingLength]);
  // A tied checkpoint may repeat the embedding under this name.
  if ((config['tie_word_embeddings'] ?? family.isTied ?? false) === true) source.drop('lm_head.weight');
  else take('lm_head', '', 'output', vocabulary);
  source.rejectUnused(family.architecture);
  return tensors;
}

/** Gemma's checkpoints store norm weights minus one. */
const shifted =
  ({ readRows }: FloatTensor, offset: number): FloatTensor['readRows'] =>
  (firstRow, out) => {
    readRows(firstRow, out);
    for (let i = 0; i < out.length; i++) out[i]! += offset;
  };
