import { GATED, RMS } from '../decoder-modules.ts';
import { invalidFile } from '../../failures.ts';
import { isJsonObject, type Json, layerTypes, show, size, wholeNumber } from '../hf-config.ts';
import { f32, type HfFamily, type HfModel, u32 } from '../hf-family.ts';
import { copyTensor, type HfTensor, weight, weightOrZeros } from '../hf-tensor.ts';
import { GELU, GEMMA3_DEFAULTS, GEMMA_NORMS, windowEntry } from './gemma.ts';
import { layerInputEnds, layerInputTensors } from './gemma3n.ts';

interface LayerSizes {
  readonly isWindowed: boolean;
  readonly headLength: number;
  readonly numKvHeads: number;
  readonly ffnLength: number;
  readonly isShared: boolean;
  /** Values are the keys. */
  readonly hasNoValues: boolean;
}

const DEFAULTS = { ...GEMMA3_DEFAULTS, sliding_window: 512, hidden_activation: 'gelu_pytorch_tanh' };

const inputLength = (config: Json): number => wholeNumber(config, 'hidden_size_per_layer_input', 256);
const numShared = (config: Json): number => wholeNumber(config, 'num_kv_shared_layers', 0);

/** Older configurations have one size for all layers without a window, newer ones an entry for each. */
function globalSize(config: Json, layer: number, key: string, olderKey: string, fallback: number): number {
  const perLayer = config['per_layer_config'];
  const own = isJsonObject(perLayer) ? perLayer[String(layer)] : undefined;
  if (isJsonObject(own) && own[key] !== undefined) return size(own, key);
  return config[olderKey] === undefined || config[olderKey] === null ? fallback : size(config, olderKey);
}

function layerSizes({ config, shape }: HfModel, layer: number): LayerSizes {
  const { numLayers, headLength, numKvHeads, ffnLength } = shape;
  const isWindowed = layerTypes(config, numLayers)[layer] === 'sliding_attention';
  const isShared = layer >= numLayers - numShared(config);
  return {
    isWindowed,
    headLength: isWindowed ? headLength : globalSize(config, layer, 'head_dim', 'global_head_dim', headLength),
    numKvHeads: isWindowed
      ? numKvHeads
      : globalSize(config, layer, 'num_key_value_heads', 'num_global_key_value_heads', numKvHeads),
    ffnLength: isShared && config['use_double_wide_mlp'] === true ? 2 * ffnLength : ffnLength,
    isShared,
    hasNoValues: !isWindowed && config['attention_k_eq_v'] === true,
  };
}

const allSizes = (model: HfModel): LayerSizes[] =>
  Array.from({ length: model.shape.numLayers }, (_, layer) => layerSizes(model, layer));

function attentionTensors({ shape }: HfModel, sizes: LayerSizes): HfTensor[] {
  const { embeddingLength: width, numHeads } = shape;
  const { headLength, numKvHeads, isShared, hasNoValues } = sizes;
  const [qRows, kvRows] = [numHeads * headLength, numKvHeads * headLength];
  const key = isShared ? weightOrZeros : weight;
  return [
    weight('self_attn.q_proj', 'attn_q', [width, qRows]),
    weight('self_attn.q_norm', 'attn_q_norm', [headLength]),
    weight('self_attn.o_proj', 'attn_output', [qRows, width]),
    key('self_attn.k_proj', 'attn_k', [width, kvRows]),
    ...(hasNoValues ? [] : [key('self_attn.v_proj', 'attn_v', [width, kvRows])]),
    key('self_attn.k_norm', 'attn_k_norm', [headLength]),
  ];
}

function layerTensors(model: HfModel, layer: number): HfTensor[] {
  const sizes = layerSizes(model, layer);
  const { embeddingLength } = model.shape;
  const feedForward = GATED.map(([from, to, dims]) =>
    weight(from, to, dims({ ...model.shape, ffnLength: sizes.ffnLength })),
  );
  const dim = inputLength(model.config);
  return [
    ...attentionTensors(model, sizes),
    ...feedForward,
    copyTensor('layer_scalar', 'layer_output_scale.weight', [1]),
    ...(dim === 0 ? [] : layerInputTensors(embeddingLength, dim)),
  ];
}

/** The rotated values of heads come first; the others are divided by a number so large that they stay. */
function rotationFactors(model: HfModel): HfTensor[] {
  const global = allSizes(model).find(({ isWindowed }) => !isWindowed);
  if (global === undefined) return [];
  const { partial_rotary_factor: share = 1 } = ropeOf(model.config, 'full_attention');
  const numPairs = global.headLength / 2;
  const numRotated = Math.floor(numPairs * Number(share));
  return [
    {
      to: 'rope_freqs.weight',
      dims: [numPairs],
      read: () => (start, out) => {
        for (let i = 0; i < out.length; i++) out[i] = start + i < numRotated ? 1 : UNROTATED;
      },
    },
  ];
}
const UNROTATED = 1e30;

function ropeOf(config: Json, kind: 'full_attention' | 'sliding_attention'): Json {
  const all = config['rope_by_kind'];
  const own = isJsonObject(all) ? all[kind] : undefined;
  if (!isJsonObject(own)) return invalidFile(`config.json: rope_parameters has no ${kind}, got ${show(all)}`);
  return own;
}

const list = (key: string, values: readonly number[]) =>
  ({ key, type: 'array<i32>', value: Int32Array.from(values) }) as const;

/** Gemma 4, text only and without experts. */
export const gemma4Family: HfFamily = {
  modelTypes: ['gemma4_text', 'gemma4'],
  architecture: 'gemma4',
  // The rotation of the two kinds of layers is written below, not as one for all.
  normalize: ({ rope_parameters: byKind, ...config }) => ({ ...DEFAULTS, ...config, rope_by_kind: byKind }),
  modules: GEMMA_NORMS,
  layer: layerTensors,
  ends: (ends, model) => [
    ...ends,
    ...(inputLength(model.config) === 0 ? [] : layerInputEnds(model)),
    ...rotationFactors(model),
  ],
  epsilon: RMS,
  isTied: true,
  settings: {
    hidden_activation: GELU,
    attention_bias: [false],
    enable_moe_block: [false],
    use_bidirectional_attention: [null, 'vision'],
  },
  entries: (model) => {
    const { config, shape } = model;
    const sizes = allSizes(model);
    const global = sizes.find(({ isWindowed }) => !isWindowed) ?? sizes[0]!;
    const cap = config['final_logit_softcapping'];
    return [
      u32('attention.key_length', global.headLength),
      u32('attention.value_length', global.headLength),
      u32('attention.key_length_swa', shape.headLength),
      u32('attention.value_length_swa', shape.headLength),
      list('attention.head_count_kv', sizes.map(({ numKvHeads }) => numKvHeads)), // prettier-ignore
      list('feed_forward_length', sizes.map(({ ffnLength }) => ffnLength)), // prettier-ignore
      windowEntry(config, 512),
      {
        key: 'attention.sliding_window_pattern',
        type: 'array<bool>',
        value: sizes.map(({ isWindowed }) => isWindowed),
      },
      u32('attention.shared_kv_layers', numShared(config)),
      u32('rope.dimension_count', global.headLength),
      u32('rope.dimension_count_swa', shape.headLength),
      f32('rope.freq_base', Number(ropeOf(config, 'full_attention')['rope_theta'] ?? 1e6)),
      f32('rope.freq_base_swa', Number(ropeOf(config, 'sliding_attention')['rope_theta'] ?? 1e4)),
      f32('final_logit_softcapping', typeof cap === 'number' ? cap : 0),
      u32('embedding_length_per_layer_input', inputLength(config)),
    ];
  },
};
