import {
  type HfKind,
  type KindMetadata,
  putExperts,
  range,
  stackGates,
  type TensorBag,
  transposed,
} from './hf-kind.ts';

const EACH = ['gate_proj', 'up_proj', 'down_proj'] as const;

const SHARED = {
  ffn_gate_inp: 'mlp.gate',
  ffn_gate_shexp: 'mlp.shared_expert.gate_proj',
  ffn_up_shexp: 'mlp.shared_expert.up_proj',
  ffn_down_shexp: 'mlp.shared_expert.down_proj',
};

export const qwenMixtureConfig = ({ number }: KindMetadata) => ({
  num_experts: number('expert_count'),
  num_experts_per_tok: number('expert_used_count'),
  moe_intermediate_size: number('expert_feed_forward_length'),
  shared_expert_intermediate_size: number('expert_shared_feed_forward_length', 0),
  decoder_sparse_step: 1,
  mlp_only_layers: [],
});

/** Qwen's experts one by one, as in Qwen 2 and 3. */
export function putQwenExperts(bag: TensorBag, from: string, to: string): void {
  putExperts(bag, from, `${to}mlp.experts`, EACH);
  if (!bag.has(`${from}ffn_gate_inp_shexp.weight`)) return;
  const { shape, values } = bag.take(`${from}ffn_gate_inp_shexp.weight`);
  bag.put(`${to}mlp.shared_expert_gate.weight`, [1, ...shape], values);
}

/** Two stacks, as newer checkpoints have them. */
export function putStackedExperts(bag: TensorBag, from: string, to: string): void {
  const [gate, up] = [bag.take(`${from}ffn_gate_exps.weight`), bag.take(`${from}ffn_up_exps.weight`)];
  const [count, numRows, numCols] = gate.shape as [number, number, number];
  bag.put(`${to}mlp.experts.gate_up_proj`, [count, 2 * numRows, numCols], stackGates(gate.values, up.values, count));
  const down = bag.take(`${from}ffn_down_exps.weight`);
  bag.put(`${to}mlp.experts.down_proj`, down.shape, down.values);
}

/** Neighbours share a byte, and scales are apart. */
function unpackMxfp4({ bytes }: { bytes: Uint8Array }): { codes: Uint8Array; scales: Uint8Array } {
  const numBlocks = bytes.length / 17;
  const [codes, scales] = [new Uint8Array(numBlocks * 16), new Uint8Array(numBlocks)];
  for (let block = 0; block < numBlocks; block++) {
    scales[block] = bytes[block * 17]!;
    const values = range(32, (i) => (bytes[block * 17 + 1 + (i % 16)]! >> (i < 16 ? 0 : 4)) & 15);
    for (let j = 0; j < 16; j++) codes[block * 16 + j] = values[2 * j]! + 16 * values[2 * j + 1]!;
  }
  return { codes, scales };
}

/** Rows of both, one of the first, then one of the second. */
function alternate<T extends Float32Array | Uint8Array>(first: T, second: T, rowLength: number): T {
  const out = new (first.constructor as new (length: number) => T)(2 * first.length);
  for (let row = 0; row < first.length / rowLength; row++) {
    out.set(first.subarray(row * rowLength, (row + 1) * rowLength) as never, 2 * row * rowLength);
    out.set(second.subarray(row * rowLength, (row + 1) * rowLength) as never, (2 * row + 1) * rowLength);
  }
  return out;
}

function putOssRest(bag: TensorBag, from: string, to: string): void {
  const sinks = bag.take(`${from}attn_sinks.weight`);
  bag.put(`${to}self_attn.sinks`, sinks.shape, sinks.values);
  const [gate, up] = [bag.take(`${from}ffn_gate_exps.bias`), bag.take(`${from}ffn_up_exps.bias`)];
  const [count, length] = gate.shape as [number, number];
  bag.put(`${to}mlp.experts.gate_up_proj_bias`, [count, 2 * length], alternate(gate.values, up.values, 1));
  const down = bag.take(`${from}ffn_down_exps.bias`);
  bag.put(`${to}mlp.experts.down_proj_bias`, down.shape, down.values);
}

const gptOss: HfKind = {
  modelType: 'gpt_oss',
  names: { ffn_gate_inp: 'mlp.router', post_attention_norm: 'post_attention_layernorm' },
  config: ({ number, numLayers }) => ({
    intermediate_size: number('expert_feed_forward_length'),
    num_local_experts: number('expert_count'),
    num_experts_per_tok: number('expert_used_count'),
    sliding_window: number('attention.sliding_window'),
    layer_types: range(numLayers).map((layer) => (layer % 2 === 0 ? 'sliding_attention' : 'full_attention')),
    attention_bias: true,
    swiglu_limit: 7,
    quantization_config: { quant_method: 'mxfp4', modules_to_not_convert: ['model.layers.*.self_attn'] },
    rope_scaling: {
      rope_type: 'yarn',
      factor: 4,
      beta_fast: 32,
      beta_slow: 1,
      truncate: false,
      original_max_position_embeddings: 64,
    },
  }),
  layer(bag, from, to) {
    const take = (part: string) => bag.takeBytes(`${from}ffn_${part}_exps.weight`);
    const [gate, up, down] = [take('gate'), take('up'), take('down')];
    const put = (name: string, shape: number[], { codes, scales }: ReturnType<typeof unpackMxfp4>): void => {
      const [count, numRows, numCols] = shape as [number, number, number];
      bag.put(`${to}mlp.experts.${name}_blocks`, [count, numRows, numCols / 32, 16], codes);
      bag.put(`${to}mlp.experts.${name}_scales`, [count, numRows, numCols / 32], scales);
    };
    const [count, numRows, numCols] = gate.shape as [number, number, number];
    const [first, second] = [unpackMxfp4(gate), unpackMxfp4(up)];
    put('gate_up_proj', [count, 2 * numRows, numCols], {
      codes: alternate(first.codes, second.codes, numCols / 2),
      scales: alternate(first.scales, second.scales, numCols / 32),
    });
    put('down_proj', down.shape, unpackMxfp4(down));
    putOssRest(bag, from, to);
  },
};

const matrices = (values: Float32Array, count: number): Float32Array[] => {
  const size = values.length / count;
  return range(count).map((i) => values.subarray(i * size, (i + 1) * size));
};
const joined = (parts: readonly Float32Array[]): Float32Array => Float32Array.from(parts.flatMap((part) => [...part]));

/** Floats are transposed. */
const gptOssFloats: HfKind = {
  ...gptOss,
  config: (metadata) => ({ ...gptOss.config!(metadata), quantization_config: undefined }),
  layer(bag, from, to) {
    const take = (part: string) => bag.take(`${from}ffn_${part}_exps.weight`);
    const [gate, up, down] = [take('gate'), take('up'), take('down')];
    const [count, numRows, numCols] = gate.shape as [number, number, number];
    const both = alternate(gate.values, up.values, numCols);
    const turned = matrices(both, count).map((matrix) => transposed(matrix, 2 * numRows, numCols));
    bag.put(`${to}mlp.experts.gate_up_proj`, [count, numCols, 2 * numRows], joined(turned));
    const [, downRows, downCols] = down.shape as [number, number, number];
    const turnedDown = matrices(down.values, count).map((matrix) => transposed(matrix, downRows, downCols));
    bag.put(`${to}mlp.experts.down_proj`, [count, downCols, downRows], joined(turnedDown));
    putOssRest(bag, from, to);
  },
};

const LATENT_NAMES = {
  attn_q_a: 'self_attn.q_a_proj',
  attn_q_a_norm: 'self_attn.q_a_layernorm',
  attn_q_b: 'self_attn.q_b_proj',
  attn_kv_a_mqa: 'self_attn.kv_a_proj_with_mqa',
  attn_kv_a_norm: 'self_attn.kv_a_layernorm',
  ffn_gate_inp: 'mlp.gate',
  ffn_gate_shexp: 'mlp.shared_experts.gate_proj',
  ffn_up_shexp: 'mlp.shared_experts.up_proj',
  ffn_down_shexp: 'mlp.shared_experts.down_proj',
};

const deepseek = (modelType: string, more: (metadata: KindMetadata) => Record<string, unknown>): HfKind => ({
  modelType,
  names: LATENT_NAMES,
  config: (metadata) => {
    const { number } = metadata;
    const rotary = number('rope.dimension_count');
    return {
      num_key_value_heads: number('attention.head_count'),
      head_dim: undefined,
      kv_lora_rank: number('attention.kv_lora_rank'),
      qk_rope_head_dim: rotary,
      qk_nope_head_dim: number('attention.key_length_mla') - rotary,
      v_head_dim: number('attention.value_length_mla'),
      n_routed_experts: number('expert_count'),
      num_experts_per_tok: number('expert_used_count'),
      moe_intermediate_size: number('expert_feed_forward_length'),
      n_shared_experts: number('expert_shared_count'),
      first_k_dense_replace: number('leading_dense_block_count'),
      moe_layer_freq: 1,
      ...more(metadata),
    };
  },
  layer(bag, from, to) {
    if (bag.has(`${from}ffn_gate_exps.weight`)) putExperts(bag, from, `${to}mlp.experts`, EACH);
    if (bag.has(`${from}exp_probs_b.bias`)) {
      const bias = bag.take(`${from}exp_probs_b.bias`);
      bag.put(`${to}mlp.gate.e_score_correction_bias`, bias.shape, bias.values);
    }
    const [keys, values] = [bag.take(`${from}attn_k_b.weight`), bag.take(`${from}attn_v_b.weight`)];
    const [count, rank, plain] = keys.shape as [number, number, number];
    const valueLength = values.shape[1]!;
    const valueParts = matrices(values.values, count);
    const heads = matrices(keys.values, count).flatMap((head, i) => [transposed(head, rank, plain), valueParts[i]!]);
    bag.put(`${to}self_attn.kv_b_proj.weight`, [count * (plain + valueLength), rank], joined(heads));
  },
});

const yarn = (multiplier: number) => ({
  type: 'yarn',
  factor: 4,
  beta_fast: 32,
  beta_slow: 1,
  mscale: multiplier,
  mscale_all_dim: multiplier,
  original_max_position_embeddings: 64,
});

/** Checkpoints with experts, by the title of the random model. */
export const mixtureKinds: Readonly<Record<string, HfKind>> = {
  mixtral: {
    modelType: 'mixtral',
    rope: 'interleaved',
    names: { ffn_gate_inp: 'block_sparse_moe.gate' },
    config: ({ number }) => ({
      num_local_experts: number('expert_count'),
      num_experts_per_tok: number('expert_used_count'),
    }),
    layer: (bag, from, to) => putExperts(bag, from, `${to}block_sparse_moe.experts`, ['w1', 'w3', 'w2']),
  },
  qwen2moe: {
    modelType: 'qwen2_moe',
    names: SHARED,
    config: (metadata) => ({ ...qwenMixtureConfig(metadata), norm_topk_prob: false }),
    layer: putQwenExperts,
  },
  qwen3moe: {
    modelType: 'qwen3_moe',
    names: SHARED,
    config: (metadata) => ({ ...qwenMixtureConfig(metadata), norm_topk_prob: true }),
    layer: putQwenExperts,
  },
  'qwen3moe in stacks': {
    modelType: 'qwen3_moe',
    names: SHARED,
    config: (metadata) => ({ ...qwenMixtureConfig(metadata), norm_topk_prob: true }),
    layer: putStackedExperts,
  },
  'gpt-oss': gptOss,
  'gpt-oss as floats': gptOssFloats,
  deepseek2: deepseek('deepseek_v3', ({ number }) => ({
    q_lora_rank: number('attention.q_lora_rank'),
    scoring_func: 'sigmoid',
    topk_method: 'noaux_tc',
    norm_topk_prob: true,
    routed_scaling_factor: number('expert_weights_scale'),
    n_group: number('expert_group_count'),
    topk_group: number('expert_group_used_count'),
    rope_scaling: yarn(1),
  })),
  'deepseek2 without query rank': deepseek('deepseek_v2', () => ({
    q_lora_rank: null,
    scoring_func: 'softmax',
    topk_method: 'greedy',
    norm_topk_prob: false,
    routed_scaling_factor: 1,
    n_group: 1,
    topk_group: 1,
    rope_scaling: yarn(7.07 / 10),
  })),
};
