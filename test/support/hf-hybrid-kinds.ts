import {
  type HfKind,
  type KindMetadata,
  putExperts,
  putFilter,
  putFlat,
  range,
  stackGates,
  type TensorBag,
} from './hf-kind.ts';

/** The kinds of layers in random files. */
const isRecurrent = (layer: number): boolean => layer % 3 !== 1;

const LFM2_NAMES = {
  attn_norm: 'operator_norm',
  ffn_norm: 'ffn_norm',
  attn_output: 'self_attn.out_proj',
  attn_q_norm: 'self_attn.q_layernorm',
  attn_k_norm: 'self_attn.k_layernorm',
  ffn_gate: 'feed_forward.w1',
  ffn_up: 'feed_forward.w3',
  ffn_down: 'feed_forward.w2',
  ffn_gate_inp: 'feed_forward.gate',
  'shortconv.in_proj': 'conv.in_proj',
  'shortconv.out_proj': 'conv.out_proj',
  token_embd_norm: 'model.embedding_norm',
};

const lfm2Config = ({ number, numLayers }: KindMetadata) => ({
  conv_L_cache: number('shortconv.l_cache'),
  conv_bias: false,
  layer_types: range(numLayers).map((layer) => (isRecurrent(layer) ? 'conv' : 'full_attention')),
});

function putLfm2Mixer(bag: TensorBag, from: string, to: string): void {
  if (bag.has(`${from}shortconv.conv.weight`)) putFilter(bag, `${from}shortconv.conv.weight`, `${to}conv.conv.weight`);
}

const MAMBA_NAMES = { ssm_in: 'mamba.in_proj', ssm_out: 'mamba.out_proj', ssm_conv1d: 'mamba.conv1d' };

function putMamba(bag: TensorBag, from: string, to: string): void {
  if (!bag.has(`${from}ssm_a`)) return;
  putFilter(bag, `${from}ssm_conv1d.weight`, `${to}mamba.conv1d.weight`);
  putFlat(bag, `${from}ssm_dt.bias`, `${to}mamba.dt_bias`);
  putFlat(bag, `${from}ssm_a`, `${to}mamba.A_log`);
  putFlat(bag, `${from}ssm_d`, `${to}mamba.D`);
  putFlat(bag, `${from}ssm_norm.weight`, `${to}mamba.norm.weight`);
}

const mambaConfig = ({ number }: KindMetadata) => ({
  mamba_n_heads: number('ssm.time_step_rank'),
  mamba_d_head: number('ssm.inner_size') / number('ssm.time_step_rank'),
  mamba_n_groups: number('ssm.group_count'),
  mamba_d_state: number('ssm.state_size'),
  mamba_d_conv: number('ssm.conv_kernel'),
  mamba_conv_bias: true,
  mamba_proj_bias: false,
});

const graniteConfig = ({ number }: KindMetadata) => ({
  tie_word_embeddings: true,
  embedding_multiplier: number('embedding_scale'),
  residual_multiplier: number('residual_scale'),
  attention_multiplier: number('attention.scale'),
  logits_scaling: number('logit_scale'),
  num_local_experts: number('expert_count', 0),
  num_experts_per_tok: number('expert_used_count', 0),
  shared_intermediate_size: number('expert_shared_feed_forward_length', 0),
});

function putGraniteExperts(bag: TensorBag, from: string, to: string): void {
  const [gate, up] = [bag.take(`${from}ffn_gate_exps.weight`), bag.take(`${from}ffn_up_exps.weight`)];
  const [count, numRows, numCols] = gate.shape as [number, number, number];
  const both = stackGates(gate.values, up.values, count);
  bag.put(`${to}block_sparse_moe.input_linear.weight`, [count, 2 * numRows, numCols], both);
  const down = bag.take(`${from}ffn_down_exps.weight`);
  bag.put(`${to}block_sparse_moe.output_linear.weight`, down.shape, down.values);
}

function putSharedNetwork(bag: TensorBag, from: string, to: string, suffix: string): void {
  const [gate, up] = [bag.take(`${from}ffn_gate${suffix}.weight`), bag.take(`${from}ffn_up${suffix}.weight`)];
  const [numRows, numCols] = gate.shape as [number, number];
  bag.put(`${to}shared_mlp.input_linear.weight`, [2 * numRows, numCols], stackGates(gate.values, up.values, 1));
  const down = bag.take(`${from}ffn_down${suffix}.weight`);
  bag.put(`${to}shared_mlp.output_linear.weight`, down.shape, down.values);
}

const graniteHybrid = (hasExperts: boolean): HfKind => ({
  modelType: 'granitemoehybrid',
  rope: 'interleaved',
  names: { ...MAMBA_NAMES, ffn_gate_inp: 'block_sparse_moe.router.layer' },
  config: (metadata) => ({
    ...graniteConfig(metadata),
    ...mambaConfig(metadata),
    mamba_expand: 2,
    position_embedding_type: 'nope',
    normalization_function: 'rmsnorm',
    layer_types: range(metadata.numLayers).map((layer) => (isRecurrent(layer) ? 'mamba' : 'attention')),
    ...(hasExperts ? {} : { shared_intermediate_size: metadata.number('feed_forward_length') }),
  }),
  layer(bag, from, to) {
    putMamba(bag, from, to);
    if (hasExperts) putGraniteExperts(bag, from, to);
    putSharedNetwork(bag, from, to, hasExperts ? '_shexp' : '');
  },
});

/** Powers of two, so that dividing by them loses nothing. */
const FALCON = {
  embedding_multiplier: 4,
  lm_head_multiplier: 0.125,
  attention_in_multiplier: 2,
  attention_out_multiplier: 0.5,
  key_multiplier: 0.25,
  ssm_in_multiplier: 0.5,
  ssm_out_multiplier: 8,
  mlp_multipliers: [16, 0.0625],
  ssm_multipliers: [2, 4, 8, 16, 32],
};

function putDivided(bag: TensorBag, from: string, to: string, factorOf: (row: number) => number): void {
  const { shape, values } = bag.take(from);
  const numCols = shape.at(-1)!;
  bag.put(
    to,
    shape,
    values.map((value, i) => value / factorOf(Math.floor(i / numCols))),
  );
}

const falconH1: HfKind = {
  modelType: 'falcon_h1',
  names: { ...MAMBA_NAMES, ffn_up: 'feed_forward.up_proj', output_norm: 'model.final_layernorm' },
  config: (metadata) => ({
    ...mambaConfig(metadata),
    ...FALCON,
    mamba_d_ssm: metadata.number('ssm.inner_size'),
    mamba_rms_norm: true,
    mamba_norm_before_gate: false,
  }),
  ends(bag) {
    putDivided(bag, 'token_embd.weight', 'model.embed_tokens.weight', () => FALCON.embedding_multiplier);
    putDivided(bag, 'output.weight', 'lm_head.weight', () => FALCON.lm_head_multiplier);
  },
  layer(bag, from, to, { number }) {
    putMamba(bag, from, to);
    putFlat(bag, `${from}ffn_norm`, `${to}pre_ff_layernorm.weight`);
    const { attention_in_multiplier: input, attention_out_multiplier: output, key_multiplier: key } = FALCON;
    for (const [name, hfName, factor] of [
      ['attn_q', 'self_attn.q_proj', input],
      ['attn_k', 'self_attn.k_proj', input * key],
      ['attn_v', 'self_attn.v_proj', input],
      ['attn_output', 'self_attn.o_proj', output],
      ['ffn_gate', 'feed_forward.gate_proj', FALCON.mlp_multipliers[0]!],
      ['ffn_down', 'feed_forward.down_proj', FALCON.mlp_multipliers[1]!],
      ['ssm_out', 'mamba.out_proj', FALCON.ssm_out_multiplier],
    ] as const)
      putDivided(bag, `${from}${name}.weight`, `${to}${hfName}.weight`, () => factor);
    const [inner, group] = [number('ssm.inner_size'), number('ssm.group_count') * number('ssm.state_size')];
    const parts = [
      ...range(inner, () => 0),
      ...range(inner, () => 1),
      ...range(group, () => 2),
      ...range(group, () => 3),
      ...range(number('ssm.time_step_rank'), () => 4),
    ];
    const factorOf = (row: number): number => FALCON.ssm_in_multiplier * FALCON.ssm_multipliers[parts[row]!]!;
    putDivided(bag, `${from}ssm_in.weight`, `${to}mamba.in_proj.weight`, factorOf);
  },
};

/** Checkpoints with recurrent layers, by the title of the random model. */
export const hybridKinds: Readonly<Record<string, HfKind>> = {
  lfm2: {
    modelType: 'lfm2',
    names: LFM2_NAMES,
    epsilonName: 'norm_eps',
    config: (metadata) => ({
      ...lfm2Config(metadata),
      intermediate_size: 1.5 * metadata.number('feed_forward_length') - 12,
      block_auto_adjust_ff_dim: true,
      block_ffn_dim_multiplier: 1,
      block_multiple_of: 32,
    }),
    layer: putLfm2Mixer,
  },
  lfm2moe: {
    modelType: 'lfm2_moe',
    names: LFM2_NAMES,
    epsilonName: 'norm_eps',
    config: (metadata) => ({
      ...lfm2Config(metadata),
      num_experts: metadata.number('expert_count'),
      num_experts_per_tok: metadata.number('expert_used_count'),
      moe_intermediate_size: metadata.number('expert_feed_forward_length'),
      num_dense_layers: metadata.number('leading_dense_block_count'),
      use_expert_bias: true,
      norm_topk_prob: true,
      routed_scaling_factor: 1,
    }),
    layer(bag, from, to) {
      putLfm2Mixer(bag, from, to);
      if (!bag.has(`${from}ffn_gate_exps.weight`)) return;
      putExperts(bag, from, `${to}feed_forward.experts`, ['w1', 'w3', 'w2']);
      putFlat(bag, `${from}exp_probs_b.bias`, `${to}feed_forward.expert_bias`);
    },
  },
  granitemoe: {
    modelType: 'granitemoe',
    rope: 'interleaved',
    names: { ffn_gate_inp: 'block_sparse_moe.router.layer' },
    config: graniteConfig,
    layer: putGraniteExperts,
  },
  granitehybrid: graniteHybrid(false),
  'granitehybrid with experts': graniteHybrid(true),
  // Such a checkpoint without recurrent layers has another architecture.
  'granite in the hybrid family': {
    modelType: 'granitemoehybrid',
    rope: 'interleaved',
    config: (metadata) => ({
      ...graniteConfig(metadata),
      shared_intermediate_size: metadata.number('feed_forward_length'),
      position_embedding_type: 'rope',
      layer_types: range(metadata.numLayers).map(() => 'attention'),
    }),
    layer: (bag, from, to) => putSharedNetwork(bag, from, to, ''),
  },
  'falcon-h1': falconH1,
  gemma3n: {
    modelType: 'gemma3n_text',
    outerType: 'gemma3n',
    prefix: 'model.language_model',
    names: {
      post_attention_norm: 'post_attention_layernorm',
      ffn_norm: 'pre_feedforward_layernorm',
      post_ffw_norm: 'post_feedforward_layernorm',
      inp_gate: 'per_layer_input_gate',
      proj: 'per_layer_projection',
      post_norm: 'post_per_layer_input_norm',
      altup_router: 'altup.modality_router',
      altup_router_norm: 'altup.router_norm',
      altup_predict_coef: 'altup.prediction_coefs',
      altup_correct_coef: 'altup.correction_coefs',
      laurel_l: 'laurel.linear_left',
      laurel_r: 'laurel.linear_right',
      laurel_post_norm: 'laurel.post_laurel_norm',
      per_layer_token_embd: 'model.language_model.embed_tokens_per_layer',
      per_layer_model_proj: 'model.language_model.per_layer_model_projection',
      per_layer_proj_norm: 'model.language_model.per_layer_projection_norm',
    },
    config: ({ number, numLayers }) => ({
      intermediate_size: range(numLayers, () => number('feed_forward_length')),
      sliding_window: number('attention.sliding_window'),
      num_kv_shared_layers: number('attention.shared_kv_layers'),
      altup_active_idx: 0,
      altup_num_inputs: number('altup.num_inputs'),
      altup_correct_scale: true,
      hidden_size_per_layer_input: number('embedding_length_per_layer_input'),
      vocab_size_per_layer_input: number('vocab_size'),
      laurel_rank: 64,
      hidden_activation: 'gelu_pytorch_tanh',
      activation_sparsity_pattern: range(numLayers, (layer) => (layer < 10 ? 0.95 : 0)),
      layer_types: range(numLayers).map((layer) => (layer % 5 < 4 ? 'sliding_attention' : 'full_attention')),
      rope_local_base_freq: 10_000,
    }),
    layer: (bag, from, to) => putFlat(bag, `${from}altup_correct_scale.weight`, `${to}altup.correct_output_scale`),
    ends(bag) {
      for (const [name, hfName] of [
        ['altup_proj', 'altup_projections'],
        ['altup_unembd_proj', 'altup_unembed_projections'],
      ] as const) {
        const { shape, values } = bag.take(`${name}.weight`);
        const [count, dim] = shape as [number, number];
        for (let i = 0; i < count; i++) {
          const part = values.slice(i * dim * dim, (i + 1) * dim * dim);
          bag.put(`model.language_model.${hfName}.${i}.weight`, [dim, dim], part);
        }
      }
      bag.put('model.audio_tower.conformer.0.norm.weight', [2], new Float32Array(2));
      bag.put('model.vision_tower.timm_model.conv_stem.bn.weight', [2], new Float32Array(2));
    },
  },
  gemma4: {
    modelType: 'gemma4_text',
    outerType: 'gemma4',
    prefix: 'model.language_model',
    names: {
      post_attention_norm: 'post_attention_layernorm',
      ffn_norm: 'pre_feedforward_layernorm',
      post_ffw_norm: 'post_feedforward_layernorm',
      inp_gate: 'per_layer_input_gate',
      proj: 'per_layer_projection',
      post_norm: 'post_per_layer_input_norm',
      per_layer_token_embd: 'model.language_model.embed_tokens_per_layer',
      per_layer_model_proj: 'model.language_model.per_layer_model_projection',
      per_layer_proj_norm: 'model.language_model.per_layer_projection_norm',
    },
    config: ({ number, numLayers }) => ({
      head_dim: number('attention.key_length_swa'),
      global_head_dim: number('attention.key_length'),
      num_global_key_value_heads: 1,
      attention_k_eq_v: true,
      sliding_window: number('attention.sliding_window'),
      num_kv_shared_layers: number('attention.shared_kv_layers'),
      hidden_size_per_layer_input: number('embedding_length_per_layer_input'),
      vocab_size_per_layer_input: number('vocab_size'),
      hidden_activation: 'gelu_pytorch_tanh',
      final_logit_softcapping: number('final_logit_softcapping'),
      enable_moe_block: false,
      use_double_wide_mlp: true,
      layer_types: range(numLayers).map((layer) => (layer % 3 === 2 ? 'full_attention' : 'sliding_attention')),
      rope_parameters: {
        full_attention: { rope_type: 'proportional', rope_theta: 1e6, partial_rotary_factor: 0.25 },
        sliding_attention: { rope_type: 'default', rope_theta: 10_000 },
      },
    }),
    layer: (bag, from, to) => putFlat(bag, `${from}layer_output_scale.weight`, `${to}layer_scalar`),
  },
};
