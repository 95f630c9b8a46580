import { invalidFile, unsupportedFile } from '../../failures.ts';
import type { MetadataEntry } from '../../types.ts';
import { GATED, RMS, width as widthDims } from '../decoder-modules.ts';
import { type Json, layerTypes, size } from '../hf-config.ts';
import { ropeSettings } from '../hf-decoder-shape.ts';
import { type HfFamily, type HfModel, type HfModule, u32 } from '../hf-family.ts';
import { copyTensor, type HfTensor, negativeExp, plusOne, rowsOf, weight } from '../hf-tensor.ts';
import { pickColumns } from '../value-reader.ts';
import { EVERY_LAYER, qwenExperts, qwenSharedEntries, qwenSharedExpert } from './qwen.ts';

/** The dimensions of gated delta nets. */
interface NetShape {
  readonly numKeyHeads: number;
  readonly numHeads: number;
  /** Of keys and of values. */
  readonly headLength: number;
  readonly convWidth: number;
}

function readNet(config: Json): NetShape {
  const net = {
    numKeyHeads: size(config, 'linear_num_key_heads'),
    numHeads: size(config, 'linear_num_value_heads'),
    headLength: size(config, 'linear_key_head_dim'),
    convWidth: size(config, 'linear_conv_kernel_dim'),
  };
  const valueLength = size(config, 'linear_value_head_dim');
  if (net.numHeads % net.numKeyHeads !== 0)
    invalidFile(`config.json: ${net.numHeads} value heads over ${net.numKeyHeads} key heads do not divide evenly`, {
      ...net,
    });
  if (valueLength !== net.headLength)
    unsupportedFile(`config.json: keys of ${net.headLength} with values of ${valueLength} are not supported`);
  return net;
}

/** Every n-th layer has attention. */
function readInterval({ config, shape }: HfModel): number {
  const interval = size(config, 'full_attention_interval', 4);
  if (config['layer_types'] === undefined || config['layer_types'] === null) return interval;
  const other = layerTypes(config, shape.numLayers).findIndex(
    (type, layer) => (type === 'full_attention') !== ((layer + 1) % interval === 0),
  );
  if (other !== -1)
    unsupportedFile(`config.json: layer ${other} breaks the rule that every ${interval}th layer has attention`);
  return interval;
}

/** Queries of each head are followed by its gate. */
function attentionTensors({ numHeads, numKvHeads, headLength, embeddingLength: width }: HfModel['shape']): HfTensor[] {
  return [
    weight('self_attn.q_proj', 'attn_q', [width, 2 * numHeads * headLength]),
    weight('self_attn.k_proj', 'attn_k', [width, numKvHeads * headLength]),
    weight('self_attn.v_proj', 'attn_v', [width, numKvHeads * headLength]),
    weight('self_attn.o_proj', 'attn_output', [numHeads * headLength, width]),
    plusOne(weight('self_attn.q_norm', 'attn_q_norm', [headLength])),
    plusOne(weight('self_attn.k_norm', 'attn_k_norm', [headLength])),
  ];
}

/** Qwen 3 Next: one matrix has q, k, v and the gate z of each key head; in files q, k and v of all heads follow each other. */
function stackedNet(width: number, { numKeyHeads, numHeads, headLength, convWidth }: NetShape): HfTensor[] {
  const perKey = (numHeads / numKeyHeads) * headLength;
  const group = 2 * headLength + 2 * perKey;
  const [numKeys, numValues] = [numKeyHeads * headLength, numHeads * headLength];
  const shape = [2 * numKeys + 2 * numValues, width];
  const inGroup = (row: number, length: number, offset: number): number =>
    Math.floor(row / length) * group + offset + (row % length);
  const sourceOf = (row: number): number => {
    if (row < numKeys) return inGroup(row, headLength, 0);
    if (row < 2 * numKeys) return inGroup(row - numKeys, headLength, headLength);
    return inGroup(row - 2 * numKeys, perKey, 2 * headLength);
  };
  const from = 'linear_attn.in_proj_qkvz.weight';
  const mixed = 2 * numKeys + numValues;
  return [
    rowsOf(from, shape, 'attn_qkv.weight', [width, mixed], sourceOf),
    rowsOf(from, shape, 'attn_gate.weight', [width, numValues], (row) => inGroup(row, perKey, 2 * headLength + perKey)),
    weight('linear_attn.in_proj_ba', 'ssm_ba', [width, 2 * numHeads]),
    copyTensor('linear_attn.conv1d.weight', 'ssm_conv1d.weight', [convWidth, mixed], [mixed, 1, convWidth]),
    copyTensor('linear_attn.dt_bias', 'ssm_dt.bias', [numHeads]),
    negativeExp(copyTensor('linear_attn.A_log', 'ssm_a', [numHeads])),
    weight('linear_attn.norm', 'ssm_norm', [headLength]),
    weight('linear_attn.out_proj', 'ssm_out', [numValues, width]),
  ];
}

/**
 * Qwen 3.5: heads of values that share a key are neighbours in the checkpoint; in files head h has key h modulo the number of keys. So head
 * t * keys + g of the file is head g * (heads / keys) + t.
 */
function separateNet(width: number, { numKeyHeads, numHeads, headLength, convWidth }: NetShape): HfTensor[] {
  const perKey = numHeads / numKeyHeads;
  const [numKeys, numValues] = [numKeyHeads * headLength, numHeads * headLength];
  const mixed = 2 * numKeys + numValues;
  const headOf = (head: number): number => (head % numKeyHeads) * perKey + Math.floor(head / numKeyHeads);
  const valueOf = (row: number): number => headOf(Math.floor(row / headLength)) * headLength + (row % headLength);
  const mixedOf = (row: number): number => (row < 2 * numKeys ? row : 2 * numKeys + valueOf(row - 2 * numKeys));
  const output = weight('linear_attn.out_proj', 'ssm_out', [numValues, width]);
  const rows = (from: string, to: string, numRows: number, sourceOf: (row: number) => number): HfTensor =>
    rowsOf(`linear_attn.${from}.weight`, [numRows, width], `${to}.weight`, [width, numRows], sourceOf);
  const perHead = (from: string, to: string) => rowsOf(`linear_attn.${from}`, [numHeads], to, [numHeads], headOf);
  return [
    rows('in_proj_qkv', 'attn_qkv', mixed, mixedOf),
    rows('in_proj_z', 'attn_gate', numValues, valueOf),
    rows('in_proj_b', 'ssm_beta', numHeads, headOf),
    rows('in_proj_a', 'ssm_alpha', numHeads, headOf),
    rowsOf('linear_attn.conv1d.weight', [mixed, 1, convWidth], 'ssm_conv1d.weight', [convWidth, mixed], mixedOf),
    perHead('dt_bias', 'ssm_dt.bias'),
    negativeExp(perHead('A_log', 'ssm_a')),
    weight('linear_attn.norm', 'ssm_norm', [headLength]),
    {
      ...output,
      read: (source) => pickColumns(output.read(source), { numCols: numValues, count: numValues, sourceOf: valueOf }),
    },
  ];
}

const mixer = (model: HfModel, layer: number, netTensors: typeof stackedNet): HfTensor[] =>
  (layer + 1) % readInterval(model) === 0
    ? attentionTensors(model.shape)
    : netTensors(model.shape.embeddingLength, readNet(model.config));

function netEntries(model: HfModel): MetadataEntry[] {
  const { numKeyHeads, numHeads, headLength, convWidth } = readNet(model.config);
  return [
    u32('full_attention_interval', readInterval(model)),
    u32('ssm.conv_kernel', convWidth),
    u32('ssm.state_size', headLength),
    u32('ssm.group_count', numKeyHeads),
    u32('ssm.time_step_rank', numHeads),
    u32('ssm.inner_size', numHeads * headLength),
  ];
}

/** Pairs of a head that are rotated by time, height and width; text has the same number for all three. */
function sectionEntries({ config }: HfModel): MetadataEntry[] {
  const sections = ropeSettings(config)['mrope_section'] ?? [11, 11, 10];
  if (!Array.isArray(sections) || sections.length > 4 || !sections.every((count) => Number.isSafeInteger(count)))
    invalidFile('config.json: mrope_section must be a list of at most 4 integers');
  const value = Int32Array.from({ length: 4 }, (_, i) => (sections[i] as number | undefined) ?? 0);
  return [{ key: 'rope.dimension_sections', type: 'array<i32>', value }];
}

const NORMS: readonly HfModule[] = [
  ['input_layernorm', 'attn_norm', widthDims],
  ['post_attention_layernorm', 'post_attention_norm', widthDims],
];

const common = {
  epsilon: RMS,
  hasShiftedNorms: true,
  ignored: /^(model\.)?mtp\./,
  settings: { hidden_act: ['silu'], attention_bias: [false], attn_output_gate: [true] },
} as const;

/** A quarter of each head is rotated unless config.json says otherwise. */
const withRotation = (config: Json): Json => ({ partial_rotary_factor: 0.25, ...config });

/** Qwen 3 Next and 3.5: gated delta nets, and attention in every fourth layer. */
export const qwenNextFamilies: readonly HfFamily[] = [
  {
    ...common,
    modelTypes: ['qwen3_next'],
    architecture: 'qwen3next',
    normalize: withRotation,
    modules: NORMS,
    layer: (model, layer) => [...mixer(model, layer, stackedNet), ...qwenExperts(model), ...qwenSharedExpert(model)],
    settings: { ...common.settings, norm_topk_prob: [true], ...EVERY_LAYER },
    entries: (model) => [...netEntries(model), ...qwenSharedEntries(model)],
  },
  {
    ...common,
    modelTypes: ['qwen3_5', 'qwen3_5_text'],
    architecture: 'qwen35',
    normalize: withRotation,
    modules: [...NORMS, ...GATED],
    layer: (model, layer) => mixer(model, layer, separateNet),
    entries: (model) => [...netEntries(model), ...sectionEntries(model)],
    preTokenizer: 'qwen35',
  },
  {
    ...common,
    modelTypes: ['qwen3_5_moe', 'qwen3_5_moe_text'],
    architecture: 'qwen35moe',
    // No layer has a feed-forward network beside the experts.
    normalize: (config) => ({ intermediate_size: config['moe_intermediate_size'], ...withRotation(config) }),
    modules: NORMS,
    layer: (model, layer) => [...mixer(model, layer, separateNet), ...qwenExperts(model), ...qwenSharedExpert(model)],
    entries: (model) => [...netEntries(model), ...sectionEntries(model), ...qwenSharedEntries(model)],
    preTokenizer: 'qwen35',
  },
];
