import { choiceOption, resolveOptions, stringOption } from '../../core/options.ts';
import { invalidFile, unsupportedFile } from '../failures.ts';
import type { MetadataEntry } from '../types.ts';
import type { GgufToWrite } from '../writer.ts';
import { openCheckpointTensors } from './checkpoint-tensors.ts';
import { convertTensor, type FloatTensor, writableTypes } from './float-tensor.ts';
import type { HfCheckpoint } from './hf-checkpoint.ts';
import { isJsonObject, type Json, numberList, positive, show, size } from './hf-config.ts';
import { checkSettings } from './hf-decoder-shape.ts';
import { FILE_TYPES } from './llama-metadata.ts';
import type { ConvertOptions } from './llama2c.ts';

const MODEL_TYPES = ['idefics3', 'smolvlm'];
const PARTS = /^model\.(vision_model|connector)\./;

interface ProjectorShape {
  readonly imageSize: number;
  readonly patchSize: number;
  readonly width: number;
  readonly ffnLength: number;
  readonly numLayers: number;
  readonly numHeads: number;
  readonly epsilon: number;
  /** Patches on a side of the squares that become one row. */
  readonly scaleFactor: number;
  /** Width of the text model. */
  readonly outputLength: number;
}

/** Module of a layer: its name in the checkpoint, its name in GGUF, and its [columns, rows]. */
const LAYER_MODULES: readonly (readonly [string, string, (shape: ProjectorShape) => readonly number[]])[] = [
  ['layer_norm1', 'ln1', (s) => [s.width]],
  ['self_attn.q_proj', 'attn_q', (s) => [s.width, s.width]],
  ['self_attn.k_proj', 'attn_k', (s) => [s.width, s.width]],
  ['self_attn.v_proj', 'attn_v', (s) => [s.width, s.width]],
  ['self_attn.out_proj', 'attn_out', (s) => [s.width, s.width]],
  ['layer_norm2', 'ln2', (s) => [s.width]],
  ['mlp.fc1', 'ffn_up', (s) => [s.width, s.ffnLength]],
  ['mlp.fc2', 'ffn_down', (s) => [s.ffnLength, s.width]],
];

/** Converts the image encoder and the projector of a SmolVLM checkpoint to an mmproj GGUF file. */
export function convertSafetensorsProjector(checkpoint: HfCheckpoint, options?: Partial<ConvertOptions>): GgufToWrite {
  const { type, name } = resolveOptions<ConvertOptions>('projector conversion', options, {
    type: choiceOption('F16', writableTypes),
    name: stringOption('model'),
  });
  const { config, files, preprocessorConfig } = checkpoint;
  if (!isJsonObject(config)) invalidFile('config.json is not an object');
  const shape = readShape(config);
  const tensors = mapTensors(files, shape);
  return {
    metadata: [
      { key: 'general.architecture', type: 'string', value: 'clip' },
      { key: 'general.type', type: 'string', value: 'mmproj' },
      { key: 'general.name', type: 'string', value: name },
      { key: 'general.file_type', type: 'u32', value: FILE_TYPES[type] },
      { key: 'general.quantization_version', type: 'u32', value: 2 },
      ...shapeEntries(shape),
      ...colourEntries(preprocessorConfig),
    ],
    tensors: tensors.map((tensor) => convertTensor(tensor, type)),
  };
}

/** Values that are left out have the defaults of the model's code. */
function readShape(config: Json): ProjectorShape {
  if (!MODEL_TYPES.includes(config['model_type'] as string)) {
    unsupportedFile(
      `config.json: model_type ${show(config['model_type'])} has no projector that can be converted (supported: ${MODEL_TYPES.join(', ')})`,
    );
  }
  const { vision_config: vision, text_config: text } = config;
  if (!isJsonObject(vision)) invalidFile('config.json: vision_config is not an object');
  if (!isJsonObject(text)) invalidFile('config.json: text_config is not an object');
  checkSettings(vision, { hidden_act: ['gelu_pytorch_tanh'], num_channels: [3] });
  const shape = {
    imageSize: size(vision, 'image_size', 224),
    patchSize: size(vision, 'patch_size', 32),
    width: size(vision, 'hidden_size', 1152),
    ffnLength: size(vision, 'intermediate_size', 3072),
    numLayers: size(vision, 'num_hidden_layers', 12),
    numHeads: size(vision, 'num_attention_heads', 16),
    epsilon: positive(vision, 'layer_norm_eps', 1e-6),
    scaleFactor: size(config, 'scale_factor', 2),
    outputLength: size(text, 'hidden_size'),
  };
  const { imageSize, patchSize, width, numHeads, scaleFactor } = shape;
  if (imageSize % (patchSize * scaleFactor) !== 0 || width % numHeads !== 0) {
    invalidFile(
      `config.json: images of ${imageSize} do not divide into squares of ${scaleFactor} patches of ${patchSize}, or ${width} values into ${numHeads} heads`,
      { imageSize, patchSize, scaleFactor, width, numHeads },
    );
  }
  return shape;
}

function shapeEntries(shape: ProjectorShape): MetadataEntry[] {
  const u32 = (key: string, value: number): MetadataEntry => ({ key: `clip.vision.${key}`, type: 'u32', value });
  return [
    { key: 'clip.has_vision_encoder', type: 'bool', value: true },
    { key: 'clip.projector_type', type: 'string', value: 'idefics3' },
    { key: 'clip.use_gelu', type: 'bool', value: true },
    u32('image_size', shape.imageSize),
    u32('patch_size', shape.patchSize),
    u32('embedding_length', shape.width),
    u32('feed_forward_length', shape.ffnLength),
    u32('block_count', shape.numLayers),
    u32('attention.head_count', shape.numHeads),
    u32('projection_dim', shape.outputLength),
    u32('projector.scale_factor', shape.scaleFactor),
    { key: 'clip.vision.attention.layer_norm_epsilon', type: 'f32', value: Math.fround(shape.epsilon) },
  ];
}

/** Mean and deviation of each colour; one half without a preprocessor_config.json. */
function colourEntries(preprocessorConfig: unknown): MetadataEntry[] {
  const settings = isJsonObject(preprocessorConfig) ? preprocessorConfig : {};
  return ['image_mean', 'image_std'].map((name) => {
    const values = settings[name] === undefined ? [0.5, 0.5, 0.5] : numberList(settings, name, 3);
    return { key: `clip.vision.${name}`, type: 'array<f32>', value: Float32Array.from(values) };
  });
}

function mapTensors(files: HfCheckpoint['files'], shape: ProjectorShape): FloatTensor[] {
  const source = openCheckpointTensors(files, (name) => (PARTS.test(name) ? name : null));
  const { width, patchSize, imageSize, scaleFactor, outputLength } = shape;
  /** Weight and bias; the bias has one value per row of the weight. */
  const takeModule = (from: string, to: string, dims: readonly number[]): FloatTensor[] => [
    source.take(`model.vision_model.${from}.weight`, `${to}.weight`, dims),
    source.take(`model.vision_model.${from}.bias`, `${to}.bias`, [dims.at(-1)!]),
  ];
  const positions = 'model.vision_model.embeddings.position_embedding.weight';
  const tensors = [
    ...takeModule('embeddings.patch_embedding', 'v.patch_embd', [patchSize, patchSize, 3, width]),
    source.take(positions, 'v.position_embd.weight', [width, (imageSize / patchSize) ** 2]),
  ];
  for (let layer = 0; layer < shape.numLayers; layer++) {
    for (const [from, to, dims] of LAYER_MODULES)
      tensors.push(...takeModule(`encoder.layers.${layer}.${from}`, `v.blk.${layer}.${to}`, dims(shape)));
  }
  tensors.push(...takeModule('post_layernorm', 'v.post_ln', [width]));
  const projection = 'model.connector.modality_projection.proj.weight';
  tensors.push(source.take(projection, 'mm.model.fc.weight', [width * scaleFactor ** 2, outputLength]));
  source.rejectUnused('SmolVLM');
  return tensors;
}
