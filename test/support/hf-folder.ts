import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createMemorySource } from '../../src/core/byte-source.ts';
import { type GgufFile, openGguf } from '../../src/gguf/index.ts';

/** How one kind of checkpoint differs from Llama's names; written apart from the converter's tables. */
interface HfKind {
  readonly modelType: string;
  /** Names that differ: GGUF module to checkpoint module. */
  readonly names?: Readonly<Record<string, string>>;
  readonly rope?: 'interleaved';
  readonly normMinusOne?: boolean;
  readonly epsilonName?: string;
  readonly config?: (number: (key: string) => number) => Record<string, unknown>;
}

const LLAMA_NAMES: Readonly<Record<string, string>> = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_qkv: 'self_attn.qkv_proj',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  attn_output: 'self_attn.o_proj',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};
const GEMMA_NAMES = {
  post_attention_norm: 'post_attention_layernorm',
  ffn_norm: 'pre_feedforward_layernorm',
  post_ffw_norm: 'post_feedforward_layernorm',
};
const tied = { tie_word_embeddings: true };

export const hfKinds: Readonly<Record<string, HfKind>> = {
  llama: { modelType: 'llama', rope: 'interleaved' },
  qwen2: { modelType: 'qwen2', config: () => tied },
  qwen3: {
    modelType: 'qwen3',
    config: () => ({ rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 64 } }),
  },
  phi3: {
    modelType: 'phi3',
    names: { ffn_up: 'mlp.gate_up_proj' },
    config: (number) => ({
      partial_rotary_factor: number('rope.dimension_count') / 16,
      original_max_position_embeddings: 128,
      rope_scaling: {
        type: 'longrope',
        attention_factor: 1.19,
        long_factor: ramp(number('rope.dimension_count') / 2, 20),
        short_factor: ramp(number('rope.dimension_count') / 2, 1.5),
      },
    }),
  },
  gemma: { modelType: 'gemma', normMinusOne: true },
  gemma2: {
    modelType: 'gemma2',
    names: GEMMA_NAMES,
    normMinusOne: true,
    config: () => ({ sliding_window: 8, attn_logit_softcapping: 5, final_logit_softcapping: 10 }),
  },
  gemma3: {
    modelType: 'gemma3_text',
    names: GEMMA_NAMES,
    normMinusOne: true,
    config: () => ({ sliding_window: 8, rope_scaling: { rope_type: 'linear', factor: 8 } }),
  },
  smollm3: { modelType: 'smollm3', rope: 'interleaved', config: () => tied },
  olmo2: {
    modelType: 'olmo3',
    names: { post_attention_norm: 'post_attention_layernorm', post_ffw_norm: 'post_feedforward_layernorm' },
    config: () => ({
      sliding_window: 8,
      rope_scaling: { rope_type: 'yarn', factor: 8, original_max_position_embeddings: 64 },
    }),
  },
  granite: {
    modelType: 'granite',
    rope: 'interleaved',
    config: (number) => ({
      ...tied,
      embedding_multiplier: number('embedding_scale'),
      residual_multiplier: number('residual_scale'),
      attention_multiplier: number('attention.scale'),
      logits_scaling: number('logit_scale'),
    }),
  },
  glm4: {
    modelType: 'glm4',
    names: {
      ffn_up: 'mlp.gate_up_proj',
      post_attention_norm: 'post_self_attn_layernorm',
      post_ffw_norm: 'post_mlp_layernorm',
    },
    config: () => ({ partial_rotary_factor: 0.5, attention_bias: true }),
  },
  phi2: {
    modelType: 'phi',
    names: {
      attn_output: 'self_attn.dense',
      ffn_up: 'mlp.fc1',
      ffn_down: 'mlp.fc2',
      output_norm: 'model.final_layernorm',
    },
    epsilonName: 'layer_norm_eps',
    config: () => ({ partial_rotary_factor: 0.5 }),
  },
  starcoder2: {
    modelType: 'starcoder2',
    names: { ffn_up: 'mlp.c_fc', ffn_down: 'mlp.c_proj' },
    epsilonName: 'norm_epsilon',
  },
  'command-r': {
    modelType: 'cohere',
    epsilonName: 'layer_norm_eps',
    config: (number) => ({ logit_scale: number('logit_scale') }),
  },
  cohere2: {
    modelType: 'cohere2',
    epsilonName: 'layer_norm_eps',
    config: (number) => ({ logit_scale: number('logit_scale'), sliding_window: 8 }),
  },
};

const ramp = (length: number, last: number): number[] =>
  Array.from({ length }, (_, i) => 1 + ((last - 1) * i) / Math.max(1, length - 1));

/** Writes an F32 model file as a checkpoint folder in two shards, without a tokenizer. */
export function writeHfFolder(folder: string, bytes: Uint8Array): void {
  const gguf = openGguf(createMemorySource(bytes));
  const architecture = gguf.metadata.string('general.architecture');
  const kind = hfKinds[architecture]!;
  const number = (key: string): number => gguf.metadata.number(`${architecture}.${key}`);
  const headDim = gguf.metadata.number(
    `${architecture}.attention.key_length`,
    number('embedding_length') / number('attention.head_count'),
  );
  mkdirSync(folder, { recursive: true });
  const isLayerNorm = kind.epsilonName !== undefined;
  const config = {
    model_type: kind.modelType,
    hidden_size: number('embedding_length'),
    num_hidden_layers: number('block_count'),
    intermediate_size: number('feed_forward_length'),
    num_attention_heads: number('attention.head_count'),
    num_key_value_heads: number('attention.head_count_kv'),
    head_dim: headDim,
    vocab_size: number('vocab_size'),
    max_position_embeddings: number('context_length'),
    rope_theta: gguf.metadata.number(`${architecture}.rope.freq_base`, 10_000),
    [kind.epsilonName ?? 'rms_norm_eps']: number(
      isLayerNorm ? 'attention.layer_norm_epsilon' : 'attention.layer_norm_rms_epsilon',
    ),
    bos_token_id: 1,
    eos_token_id: 2,
    ...kind.config?.(number),
  };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const tensors = [...gguf.tensors.keys()].filter((name) => !name.startsWith('rope_'));
  const weightMap: Record<string, string> = {};
  for (const [shard, half] of [tensors.slice(0, 9), tensors.slice(9)].entries()) {
    const file = `model-0000${shard + 1}-of-00002.safetensors`;
    const parts = half.map((name) => ({ ...readTensor(gguf, name, kind, headDim), name: hfName(name, kind) }));
    for (const { name } of parts) weightMap[name] = file;
    writeFileSync(join(folder, file), safetensors(parts));
  }
  writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map: weightMap }));
}

function hfName(name: string, { names = {} }: HfKind): string {
  const [, layer, module, part] = /^(?:blk\.(\d+)\.)?(\w+)\.(weight|bias)$/.exec(name)!;
  if (layer !== undefined) return `model.layers.${layer}.${names[module!] ?? LLAMA_NAMES[module!]}.${part}`;
  const outer = { token_embd: 'model.embed_tokens', output_norm: 'model.norm', output: 'lm_head', ...names };
  return `${(outer as Record<string, string>)[module!]}.${part}`;
}

function readTensor(
  gguf: GgufFile,
  name: string,
  kind: HfKind,
  headDim: number,
): { shape: number[]; values: Float32Array } {
  const tensor = gguf.tensor(name);
  const raw = new Uint8Array(tensor.sizeBytes);
  gguf.readTensor(tensor, raw);
  const values = new Float32Array(raw.buffer);
  const shape = tensor.dims.toReversed();
  if (kind.normMinusOne === true && name.includes('norm')) return { shape, values: values.map((value) => value - 1) };
  if (kind.rope !== 'interleaved' || !/attn_[qk]\./.test(name)) return { shape, values };
  // The checkpoint rotates value i with i + half of a head, the file 2i with 2i + 1.
  const [numRows = 1, numCols = 1] = shape;
  const out = new Float32Array(values.length);
  for (let row = 0; row < numRows; row++) {
    const at = row % headDim;
    const to = row - at + (at % 2) * (headDim / 2) + Math.floor(at / 2);
    out.set(values.subarray(row * numCols, (row + 1) * numCols), to * numCols);
  }
  return { shape, values: out };
}

export function safetensors(tensors: readonly { name: string; shape: number[]; values: Float32Array }[]): Uint8Array {
  let end = 0;
  const header = Object.fromEntries(
    tensors.map(({ name, shape, values }) => {
      const begin = end;
      end += values.byteLength;
      return [name, { dtype: 'F32', shape, data_offsets: [begin, end] }];
    }),
  );
  const json = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(json.length));
  const parts = tensors.map(({ values }) => new Uint8Array(values.slice().buffer));
  return Buffer.concat([prefix, json, ...parts]);
}
