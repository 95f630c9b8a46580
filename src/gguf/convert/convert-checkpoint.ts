import { choiceOption, optional, resolveOptions, stringOption } from '../../core/options.ts';
import type { TensorTypeName } from '../../core/tensor-type.ts';
import { quantFormats } from '../../quant/index.ts';
import { invalidFile, unsupportedFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import type { GgufToWrite, TensorToWrite } from '../writer.ts';
import { type CheckpointTensors, openCheckpointTensors } from './checkpoint-tensors.ts';
import { HF_FAMILIES } from './families/index.ts';
import { convertTensor, writableTypes } from './float-tensor.ts';
import type { HfCheckpoint, HfConvertOptions } from './hf-checkpoint.ts';
import { isJsonObject, type Json, positive, show } from './hf-config.ts';
import { checkSettings, type HfDecoderShape, readDecoderShape } from './hf-decoder-shape.ts';
import type { HfFamily, HfModel, HfModule } from './hf-family.ts';
import { convertRope } from './hf-rope.ts';
import {
  copyTensor,
  type FloatHfTensor,
  type HfTensor,
  pairHeads,
  type PackedReader,
  plusOne,
  weight,
} from './hf-tensor.ts';
import { convertHfTokenizer } from './hf-tokenizer.ts';
import { FILE_TYPES } from './llama-metadata.ts';
import { convertSafetensorsBert } from './safetensors-bert.ts';
import { readTextConfig, renameTensors } from './text-model.ts';

/** `model_type` values of checkpoints that can be converted. */
export const convertibleModelTypes: readonly string[] = [
  ...new Set([...HF_FAMILIES.flatMap(({ modelTypes }) => modelTypes), 'bert']),
];

/** Converts a Hugging Face checkpoint of any supported kind, chosen by `model_type` in config.json. */
export function convertSafetensors(checkpoint: HfCheckpoint, options?: Partial<HfConvertOptions>): GgufToWrite {
  const resolved = resolveOptions<HfConvertOptions>('safetensors conversion', options, {
    type: choiceOption('Q8_0', writableTypes),
    name: stringOption('model'),
    preTokenizer: optional(stringOption('default')),
  });
  if (!isJsonObject(checkpoint.config)) invalidFile('config.json is not an object');
  const config = readTextConfig(checkpoint.config);
  const modelType = config['model_type'];
  if (modelType === 'bert') return convertSafetensorsBert(checkpoint, { type: resolved.type, name: resolved.name });
  const family = HF_FAMILIES.find(
    ({ modelTypes, isFor }) => modelTypes.includes(modelType as string) && (isFor?.(config) ?? true),
  );
  if (family === undefined) {
    const supported = convertibleModelTypes.join(', ');
    unsupportedFile(`config.json: model_type ${show(modelType)} is not supported (supported: ${supported})`);
  }
  return convertFamily(family, family.normalize?.(config) ?? config, checkpoint, resolved);
}

function convertFamily(
  family: HfFamily,
  config: Json,
  checkpoint: HfCheckpoint,
  { type, name, preTokenizer }: HfConvertOptions,
): GgufToWrite {
  checkSettings(config, family.settings);
  checkQuantization(config, family.quantization ?? []);
  const shape = readDecoderShape(config);
  const rope = convertRope(config, shape, family.architecture);
  const target = { shape, bosId: shape.bosId, eosId: shape.eosId };
  const own = family.entries?.({ config, shape }) ?? [];
  const entries = [
    ...shapeEntries(family, { config, shape }, type, name),
    ...rope.entries,
    ...own.map((entry) => ({ ...entry, key: `${family.architecture}.${entry.key}` })),
    ...convertHfTokenizer(checkpoint, target, preTokenizer ?? family.preTokenizer ?? null),
  ];
  const tensors = mapTensors(family, { config, shape }, checkpoint, type);
  return {
    metadata: [...new Map(entries.map((entry) => [entry.key, entry])).values()],
    tensors: [...tensors, ...rope.tensors.map((tensor) => convertTensor(tensor, type))],
  };
}

function checkQuantization(config: Json, accepted: readonly string[]): void {
  const quantization = config['quantization_config'];
  if (quantization === undefined || quantization === null) return;
  const method = isJsonObject(quantization) ? quantization['quant_method'] : undefined;
  if (typeof method === 'string' && accepted.includes(method)) return;
  const supported = accepted.length === 0 ? 'none' : accepted.join(', ');
  unsupportedFile(
    `config.json: quantization_config with method ${show(method)} is not supported (supported: ${supported})`,
  );
}

function shapeEntries(
  { architecture, epsilon: [epsilonKey, epsilonName] }: HfFamily,
  { config, shape }: HfModel,
  type: TensorTypeName,
  name: string,
): MetadataEntry[] {
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
  ];
}

function mapTensors(
  family: HfFamily,
  model: HfModel,
  { files, config }: HfCheckpoint,
  type: TensorTypeName,
): TensorToWrite[] {
  const { shape } = model;
  const source = openCheckpointTensors(files, renameTensors(family, config as Json, shape.numLayers));
  const write = (tensor: HfTensor, from: string, to: string): TensorToWrite =>
    writeTensor(tensor, { source, from, name: `${to}${tensor.to}` }, type);
  const ends = endTensors(family, model, source);
  const tensors = (family.ends?.(ends, model) ?? ends).map((tensor) => write(tensor, '', ''));
  for (let layer = 0; layer < shape.numLayers; layer++) {
    const layerTensors = [
      ...family.modules.flatMap((module) => moduleTensors(family, module, shape)),
      ...(family.layer?.(model, layer) ?? []),
    ];
    for (const tensor of layerTensors) tensors.push(write(tensor, `model.layers.${layer}.`, `blk.${layer}.`));
  }
  source.rejectUnused(family.architecture);
  return tensors;
}

/** The weight of a module, and its bias if the family has one. */
function moduleTensors(family: HfFamily, [from, to, dims]: HfModule, shape: HfDecoderShape): FloatHfTensor[] {
  const { biased = [], hasShiftedNorms = false, pairsNeighbours = false } = family;
  const parts = [weight(from, to, dims(shape))];
  if (biased.includes(to)) parts.push(copyTensor(`${from}.bias`, `${to}.bias`, dims(shape).slice(-1)));
  if (pairsNeighbours && (to === 'attn_q' || to === 'attn_k'))
    return parts.map((part) => pairHeads(part, shape.headLength));
  return hasShiftedNorms && to.endsWith('norm') ? parts.map(plusOne) : parts;
}

function endTensors(family: HfFamily, { config, shape }: HfModel, source: CheckpointTensors): FloatHfTensor[] {
  const vocabulary: HfModule[2] = (s) => [s.embeddingLength, s.vocabSize];
  const modules: HfModule[] = [
    ['model.embed_tokens', 'token_embd', vocabulary],
    [family.outputNorm ?? 'model.norm', 'output_norm', (s) => [s.embeddingLength]],
  ];
  // A tied checkpoint may repeat the embedding under this name.
  if (isTied(config, family)) source.drop('lm_head.weight');
  else modules.push(['lm_head', 'output', vocabulary]);
  return modules.flatMap((module) => moduleTensors(family, module, shape));
}

const isTied = (config: Json, family: HfFamily): boolean =>
  (config['tie_word_embeddings'] ?? family.isTied ?? false) === true;

/** Bytes of packed blocks in memory at a time, about 1 MB. */
const PACKED_BLOCKS = 2 ** 16;

function writeTensor(
  tensor: HfTensor,
  { source, from, name }: { source: CheckpointTensors; from: string; name: string },
  type: TensorTypeName,
): TensorToWrite {
  const fullName = (part: string): string => `${from}${part}`;
  const read = tensor.read({
    fullName,
    has: (part) => source.has(fullName(part)),
    values: (part, shape) => source.values(fullName(part), shape),
    bytes: (part, shape) => source.bytes(fullName(part), shape),
  });
  const { dims } = tensor;
  if (typeof read === 'function')
    return convertTensor({ name, dims, readRows: (firstRow, out) => read(firstRow * dims[0]!, out) }, type);
  return { name, type: read.type, dims, data: () => packedChunks(read, dims) };
}

function* packedChunks({ type, readBlocks }: PackedReader, dims: readonly number[]): Generator<Uint8Array> {
  const { blockSize, blockBytes } = quantFormats[type];
  const numBlocks = dims.reduce((product, dim) => product * dim, 1) / blockSize;
  const bytes = new Uint8Array(Math.min(PACKED_BLOCKS, numBlocks) * blockBytes);
  for (let first = 0; first < numBlocks; first += PACKED_BLOCKS) {
    const chunk = bytes.subarray(0, Math.min(PACKED_BLOCKS, numBlocks - first) * blockBytes);
    readBlocks(first, chunk);
    yield chunk;
  }
}
