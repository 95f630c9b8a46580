import { type HfKind, type KindMetadata, pickedRows, putFilter, putFlat, range, type TensorBag } from './hf-kind.ts';
import { putQwenExperts, putStackedExperts, qwenMixtureConfig } from './hf-mixture-kinds.ts';

const NEXT_NAMES = {
  post_attention_norm: 'post_attention_layernorm',
  ssm_ba: 'linear_attn.in_proj_ba',
  ssm_norm: 'linear_attn.norm',
  ssm_out: 'linear_attn.out_proj',
  ffn_gate_inp: 'mlp.gate',
  ffn_gate_shexp: 'mlp.shared_expert.gate_proj',
  ffn_up_shexp: 'mlp.shared_expert.up_proj',
  ffn_down_shexp: 'mlp.shared_expert.down_proj',
};

const INTERVAL = 2;

const nextConfig = ({ number, numLayers }: KindMetadata) => ({
  linear_num_key_heads: number('ssm.group_count'),
  linear_num_value_heads: number('ssm.time_step_rank'),
  linear_key_head_dim: number('ssm.state_size'),
  linear_value_head_dim: number('ssm.state_size'),
  linear_conv_kernel_dim: number('ssm.conv_kernel'),
  full_attention_interval: INTERVAL,
  layer_types: range(numLayers).map((layer) => ((layer + 1) % INTERVAL === 0 ? 'full_attention' : 'linear_attention')),
});

/** Of each key head: its query, its key, the values that use it and their gates. */
function putStackedNet(bag: TensorBag, from: string, to: string, { number }: KindMetadata): void {
  if (!bag.has(`${from}attn_qkv.weight`)) return;
  const [heads, keys, size] = [number('ssm.time_step_rank'), number('ssm.group_count'), number('ssm.state_size')];
  const [mixed, gates] = [bag.take(`${from}attn_qkv.weight`), bag.take(`${from}attn_gate.weight`)];
  const [numMixed, numCols] = mixed.shape as [number, number];
  const both = new Float32Array([...mixed.values, ...gates.values]);
  const perKey = (heads / keys) * size;
  const sources = range(keys).flatMap((key) => [
    ...range(size, (i) => key * size + i),
    ...range(size, (i) => (keys + key) * size + i),
    ...range(perKey, (i) => 2 * keys * size + key * perKey + i),
    ...range(perKey, (i) => numMixed + key * perKey + i),
  ]);
  const values = pickedRows(both, numCols, sources);
  bag.put(`${to}linear_attn.in_proj_qkvz.weight`, [sources.length, numCols], values);
  putFilter(bag, `${from}ssm_conv1d.weight`, `${to}linear_attn.conv1d.weight`);
  putFlat(bag, `${from}ssm_dt.bias`, `${to}linear_attn.dt_bias`);
  putFlat(bag, `${from}ssm_a`, `${to}linear_attn.A_log`);
}

/** Heads that share a key are neighbours; in the file they are a number of keys apart. */
function putSeparateNet(bag: TensorBag, from: string, to: string, { number }: KindMetadata): void {
  if (!bag.has(`${from}attn_qkv.weight`)) return;
  const [heads, keys, size] = [number('ssm.time_step_rank'), number('ssm.group_count'), number('ssm.state_size')];
  const fileHead = (head: number): number => (head % (heads / keys)) * keys + Math.floor(head / (heads / keys));
  const perHead = range(heads, fileHead);
  const perValue = range(heads).flatMap((head) => range(size, (i) => fileHead(head) * size + i));
  const before = 2 * keys * size;
  const mixed = [...range(before), ...perValue.map((row) => before + row)];
  const put = (
    name: string,
    hfName: string,
    sources: readonly number[],
    shapeOf = (shape: number[]) => shape,
  ): void => {
    const { shape, values } = bag.take(`${from}${name}`);
    const picked = pickedRows(values, values.length / sources.length, sources);
    bag.put(`${to}linear_attn.${hfName}`, shapeOf(shape), picked);
  };
  put('attn_qkv.weight', 'in_proj_qkv.weight', mixed);
  put('attn_gate.weight', 'in_proj_z.weight', perValue);
  put('ssm_beta.weight', 'in_proj_b.weight', perHead);
  put('ssm_alpha.weight', 'in_proj_a.weight', perHead);
  put('ssm_conv1d.weight', 'conv1d.weight', mixed, ([channels, width]) => [channels!, 1, width!]);
  put('ssm_dt.bias', 'dt_bias', perHead);
  put('ssm_a', 'A_log', perHead);
  const { shape, values } = bag.take(`${from}ssm_out.weight`);
  const numCols = shape[1]!;
  const columns = values.map((_, i) => values[i - (i % numCols) + perValue[i % numCols]!]!);
  bag.put(`${to}linear_attn.out_proj.weight`, shape, columns);
}

/** Models that also see: settings and tensors of the text are apart from the others. */
const qwen35 = (type: string, hasExperts: boolean): HfKind => ({
  modelType: `${type}_text`,
  outerType: type,
  prefix: 'model.language_model',
  names: NEXT_NAMES,
  normMinusOne: true,
  config: (metadata) => ({
    ...nextConfig(metadata),
    ...(hasExperts ? { ...qwenMixtureConfig(metadata), mtp_num_hidden_layers: 1 } : {}),
    attn_output_gate: true,
    rope_theta: undefined,
    rope_parameters: {
      rope_type: 'default',
      rope_theta: metadata.number('rope.freq_base'),
      partial_rotary_factor: 0.5,
      mrope_section: [2, 1, 1],
      mrope_interleaved: true,
    },
  }),
  layer(bag, from, to, metadata) {
    putSeparateNet(bag, from, to, metadata);
    if (!hasExperts) return;
    const gate = bag.take(`${from}ffn_gate_inp_shexp.weight`);
    bag.put(`${to}mlp.shared_expert_gate.weight`, [1, ...gate.shape], gate.values);
    putStackedExperts(bag, from, to);
  },
  ends(bag) {
    bag.put('model.visual.patch_embed.proj.weight', [2, 2], new Float32Array(4));
    bag.put('mtp.norm.weight', [3], new Float32Array(3));
  },
});

/** Checkpoints with gated delta nets, by the title of the random model. */
export const deltaKinds: Readonly<Record<string, HfKind>> = {
  qwen3next: {
    modelType: 'qwen3_next',
    names: NEXT_NAMES,
    normMinusOne: true,
    config: (metadata) => ({
      ...nextConfig(metadata),
      ...qwenMixtureConfig(metadata),
      norm_topk_prob: true,
      partial_rotary_factor: 0.5,
    }),
    layer(bag, from, to, metadata) {
      putStackedNet(bag, from, to, metadata);
      putQwenExperts(bag, from, to);
    },
  },
  qwen35: qwen35('qwen3_5', false),
  qwen35moe: qwen35('qwen3_5_moe', true),
};
