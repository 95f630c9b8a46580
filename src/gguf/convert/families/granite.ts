import type { MetadataEntry } from '../../types.ts';
import { ATTENTION, GATED, INPUT_NORMS, RMS, SILU } from '../decoder-modules.ts';
import { type Json, layerTypes, positive, size, wholeNumber } from '../hf-config.ts';
import { expertEntries, type HfExperts, pickHalf, readExperts } from '../hf-experts.ts';
import { bool, f32, type HfFamily, type HfModel, u32 } from '../hf-family.ts';
import { mamba2Entries, mamba2Tensors, readMamba2 } from '../hf-mamba2.ts';
import { copyTensor, type HfTensor, pairHeads, rowsOf, weight } from '../hf-tensor.ts';

const factorEntries = ({ config }: HfModel): MetadataEntry[] => [
  f32('embedding_scale', positive(config, 'embedding_multiplier', 1)),
  f32('residual_scale', positive(config, 'residual_multiplier', 1)),
  f32('attention.scale', positive(config, 'attention_multiplier', 1)),
  f32('logit_scale', positive(config, 'logits_scaling', 1)),
];

const EXPERT_KEYS = { count: 'num_local_experts', used: 'num_experts_per_tok', ffnLength: 'intermediate_size' };

const hasExperts = (config: Json): boolean => wholeNumber(config, 'num_local_experts', 0) > 0;
const sharedLength = (config: Json): number => wholeNumber(config, 'shared_intermediate_size', 0);

/** The checkpoint stacks gate and up of each expert. */
function expertTensors({ count, ffnLength }: HfExperts, width: number): HfTensor[] {
  const input = 'block_sparse_moe.input_linear.weight';
  const output = 'block_sparse_moe.output_linear.weight';
  const shape = { count, numRows: ffnLength, numCols: width };
  const dims = [width, ffnLength, count];
  return [
    { to: 'ffn_gate_exps.weight', dims, read: (source) => pickHalf(source, input, shape, 0) },
    { to: 'ffn_up_exps.weight', dims, read: (source) => pickHalf(source, input, shape, 1) },
    copyTensor(output, 'ffn_down_exps.weight', [ffnLength, width, count]),
    weight('block_sparse_moe.router.layer', 'ffn_gate_inp', [width, count]),
  ];
}

/** A network for every token: beside the experts, or instead of them. */
function sharedTensors(length: number, width: number, suffix: '_shexp' | ''): HfTensor[] {
  const from = 'shared_mlp.input_linear.weight';
  const half = (name: string, offset: number): HfTensor =>
    rowsOf(from, [2 * length, width], `${name}${suffix}.weight`, [width, length], (row) => row + offset);
  return [
    half('ffn_gate', 0),
    half('ffn_up', length),
    weight('shared_mlp.output_linear', `ffn_down${suffix}`, [length, width]),
  ];
}

function feedForward({ config, shape }: HfModel): HfTensor[] {
  const [width, length] = [shape.embeddingLength, sharedLength(config)];
  if (!hasExperts(config)) return sharedTensors(length, width, '');
  return [
    ...expertTensors(readExperts(config, EXPERT_KEYS), width),
    ...(length === 0 ? [] : sharedTensors(length, width, '_shexp')),
  ];
}

const feedForwardEntries = ({ config }: HfModel): MetadataEntry[] => {
  const length = sharedLength(config);
  if (!hasExperts(config)) return [u32('feed_forward_length', length)];
  return [
    ...expertEntries(readExperts(config, EXPERT_KEYS)),
    ...(length === 0 ? [] : [u32('expert_shared_feed_forward_length', length)]),
  ];
};

const common = { epsilon: RMS, pairsNeighbours: true, settings: SILU } as const;

/** Layers with attention; the others have Mamba 2. */
const hasAttention = ({ config, shape }: HfModel, layer: number): boolean =>
  ['attention', 'full_attention'].includes(layerTypes(config, shape.numLayers)[layer]!);

const isHybrid = (config: Json): boolean => {
  const types: unknown = config['layer_types'];
  // Newer configurations name the layers by their kind of attention.
  return Array.isArray(types) && (types.includes('mamba') || types.includes('linear_attention'));
};

/** All layers of such models have positions, or none does. */
const rotationEntry = (config: Json): MetadataEntry =>
  bool('rope.scaling.finetuned', config['position_embedding_type'] === 'rope');

function mixer(model: HfModel, layer: number): HfTensor[] {
  const { config, shape } = model;
  const width = shape.embeddingLength;
  if (hasAttention(model, layer)) {
    return ATTENTION.map(([from, to, dims]) => {
      const tensor = weight(from, to, dims(shape));
      return to === 'attn_q' || to === 'attn_k' ? pairHeads(tensor, shape.headLength) : tensor;
    });
  }
  return Object.values(mamba2Tensors(readMamba(config), width));
}

const readMamba = (config: Json) => readMamba2(config, size(config, 'mamba_expand') * size(config, 'hidden_size'));

/** A model without experts may have no `intermediate_size`. */
const withLength = (config: Json): Json => ({
  ...config,
  ...(hasExperts(config) ? {} : { intermediate_size: sharedLength(config) }),
});

function hybridEntries(model: HfModel): MetadataEntry[] {
  const { numLayers, numKvHeads } = model.shape;
  const value = Int32Array.from({ length: numLayers }, (_, layer) => (hasAttention(model, layer) ? numKvHeads : 0));
  return [{ key: 'attention.head_count_kv', type: 'array<i32>', value }, ...mamba2Entries(readMamba(model.config))];
}

/** Granite 3 and 4: dense, with experts, and with Mamba 2 in most layers. */
export const graniteFamilies: readonly HfFamily[] = [
  {
    ...common,
    modelTypes: ['granite'],
    architecture: 'granite',
    modules: [...ATTENTION, ...GATED, ...INPUT_NORMS],
    entries: factorEntries,
  },
  {
    ...common,
    modelTypes: ['granitemoe', 'granitemoeshared'],
    architecture: 'granitemoe',
    modules: [...ATTENTION, ...INPUT_NORMS],
    layer: feedForward,
    entries: (model) => [...factorEntries(model), ...feedForwardEntries(model)],
  },
  {
    ...common,
    modelTypes: ['granitemoehybrid'],
    isFor: isHybrid,
    architecture: 'granitehybrid',
    normalize: withLength,
    modules: INPUT_NORMS,
    layer: (model, layer) => [...mixer(model, layer), ...feedForward(model)],
    settings: { ...SILU, mamba_conv_bias: [true], mamba_proj_bias: [false], normalization_function: ['rmsnorm'] },
    entries: (model) => [
      ...factorEntries(model),
      ...feedForwardEntries(model),
      ...hybridEntries(model),
      rotationEntry(model.config),
    ],
  },
  // Members of the hybrid family in which every layer has attention.
  ...[false, true].map((isMixture): HfFamily => ({
    ...common,
    modelTypes: ['granitemoehybrid'],
    isFor: (config) => hasExperts(config) === isMixture,
    architecture: isMixture ? 'granitemoe' : 'granite',
    normalize: withLength,
    modules: [...ATTENTION, ...INPUT_NORMS],
    layer: feedForward,
    entries: (model) => [...factorEntries(model), ...feedForwardEntries(model), rotationEntry(model.config)],
  })),
];
