import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createMemorySource } from '../../src/core/byte-source.ts';
import { createMemorySink, type GgufFile, openGguf, writeGguf } from '../../src/gguf/index.ts';
import { denseKinds } from './hf-dense-kinds.ts';
import type { HfKind, KindMetadata, TensorBag } from './hf-kind.ts';
import { type NamedTensor, safetensors } from './safetensors-file.ts';

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

/** Writes a model file of F32 tensors and packed experts as a checkpoint folder in two shards, without a tokenizer. */
export function writeHfFolder(
  folder: string,
  bytes: Uint8Array,
  givenKind?: HfKind,
  edit: (tensors: readonly NamedTensor[]) => readonly NamedTensor[] = (tensors) => tensors,
): void {
  const gguf = openGguf(createMemorySource(bytes));
  const architecture = gguf.metadata.string('general.architecture');
  const kind = givenKind ?? denseKinds[architecture]!;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(nestConfig(describeConfig(gguf, kind), kind)));
  const tensors = edit(checkpointTensors(gguf, kind));
  const weightMap: Record<string, string> = {};
  for (const [shard, half] of [tensors.slice(0, 9), tensors.slice(9)].entries()) {
    const file = `model-0000${shard + 1}-of-00002.safetensors`;
    for (const { name } of half) weightMap[name] = file;
    writeFileSync(join(folder, file), safetensors(half));
  }
  writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map: weightMap }));
}

function readMetadata({ metadata }: GgufFile): KindMetadata {
  const architecture = metadata.string('general.architecture');
  return {
    number: (key, defaultValue) => metadata.number(`${architecture}.${key}`, defaultValue),
    numLayers: metadata.number(`${architecture}.block_count`),
  };
}

/** Files with recurrent layers list the heads of every layer, 0 for those. */
function numKvHeads({ metadata }: GgufFile): number {
  const key = `${metadata.string('general.architecture')}.attention.head_count_kv`;
  return ArrayBuffer.isView(metadata.get(key)) ? Math.max(...Array.from(metadata.numbers(key))) : metadata.number(key);
}

/** Files may list a number for each layer. */
function smallest({ metadata }: GgufFile, name: string): number {
  const key = `${metadata.string('general.architecture')}.${name}`;
  return ArrayBuffer.isView(metadata.get(key)) ? Math.min(...Array.from(metadata.numbers(key))) : metadata.number(key);
}

function headLength(gguf: GgufFile): number {
  const { number } = readMetadata(gguf);
  return number('attention.key_length', number('embedding_length') / number('attention.head_count'));
}

function describeConfig(gguf: GgufFile, kind: HfKind): Record<string, unknown> {
  const metadata = readMetadata(gguf);
  const { number } = metadata;
  const isLayerNorm = kind.epsilonName?.startsWith('layer_norm') === true || kind.epsilonName === 'norm_epsilon';
  return {
    model_type: kind.modelType,
    hidden_size: number('embedding_length'),
    num_hidden_layers: metadata.numLayers,
    intermediate_size: smallest(gguf, 'feed_forward_length'),
    num_attention_heads: number('attention.head_count'),
    num_key_value_heads: numKvHeads(gguf),
    head_dim: headLength(gguf),
    vocab_size: number('vocab_size'),
    max_position_embeddings: number('context_length'),
    rope_theta: number('rope.freq_base', 10_000),
    [kind.epsilonName ?? 'rms_norm_eps']: number(
      isLayerNorm ? 'attention.layer_norm_epsilon' : 'attention.layer_norm_rms_epsilon',
    ),
    bos_token_id: 1,
    eos_token_id: 2,
    ...kind.config?.(metadata),
  };
}

const nestConfig = (config: Record<string, unknown>, { outerType }: HfKind): Record<string, unknown> =>
  outerType === undefined ? config : { model_type: outerType, text_config: config, vision_config: { hidden_size: 2 } };

function checkpointTensors(gguf: GgufFile, kind: HfKind): NamedTensor[] {
  const metadata = readMetadata(gguf);
  const remaining = new Set([...gguf.tensors.keys()].filter((name) => !name.startsWith('rope_')));
  const result: NamedTensor[] = [];
  const prefix = kind.prefix ?? 'model';
  const takeBytes: TensorBag['takeBytes'] = (name) => {
    if (!remaining.delete(name)) throw new Error(`the file has no tensor ${name}`);
    const bytes = new Uint8Array(gguf.tensor(name).sizeBytes);
    gguf.readTensor(gguf.tensor(name), bytes);
    return { shape: gguf.tensor(name).dims.toReversed(), bytes };
  };
  const bag: TensorBag = {
    has: (name) => remaining.has(name),
    takeBytes,
    take: (name) => {
      const { shape, bytes } = takeBytes(name);
      return { shape, values: adjust(name, shape, new Float32Array(bytes.buffer), kind, headLength(gguf)) };
    },
    put: (name, shape, values) => void result.push({ name, shape: [...shape], values }),
  };
  for (let layer = 0; layer < metadata.numLayers; layer++)
    kind.layer?.(bag, `blk.${layer}.`, `${prefix}.layers.${layer}.`, metadata);
  kind.ends?.(bag, metadata);
  for (const name of remaining) {
    const { shape, values } = bag.take(name);
    bag.put(hfName(name, kind, prefix), shape, values);
  }
  return result;
}

function hfName(name: string, { names = {} }: HfKind, prefix: string): string {
  const [, layer, module, part] = /^(?:blk\.(\d+)\.)?([\w.]+?)\.(weight|bias)$/.exec(name)!;
  if (layer !== undefined) return `${prefix}.layers.${layer}.${names[module!] ?? LLAMA_NAMES[module!]}.${part}`;
  const outer = { token_embd: `${prefix}.embed_tokens`, output_norm: `${prefix}.norm`, output: 'lm_head', ...names };
  return `${(outer as Record<string, string>)[module!]}.${part}`;
}

const isShiftedNorm = (name: string, kind: HfKind): boolean =>
  kind.normMinusOne === true && name.includes('norm') && !name.includes('ssm_');

/** The checkpoint's values of a tensor. */
function adjust(name: string, shape: number[], values: Float32Array, kind: HfKind, headDim: number): Float32Array {
  if (isShiftedNorm(name, kind)) return values.map((value) => value - 1);
  if (name.endsWith('.ssm_a')) return values.map((value) => Math.log(Math.abs(value)));
  if (kind.rope !== 'interleaved' || !/attn_[qk]\./.test(name)) return values;
  // The checkpoint rotates value i with i + half of a head, the file 2i with 2i + 1.
  const [numRows = 1, numCols = 1] = shape;
  const out = new Float32Array(values.length);
  for (let row = 0; row < numRows; row++) {
    const at = row % headDim;
    const to = row - at + (at % 2) * (headDim / 2) + Math.floor(at / 2);
    out.set(values.subarray(row * numCols, (row + 1) * numCols), to * numCols);
  }
  return out;
}

/** The file after the rounding that logarithms and differences in the checkpoint cause. */
export function afterRounding(bytes: Uint8Array, kind: HfKind): Uint8Array<ArrayBuffer> {
  const gguf = openGguf(createMemorySource(bytes));
  const tensors = [...gguf.tensors.values()].map(({ name, type, dims, sizeBytes }) => {
    const data = new Uint8Array(sizeBytes);
    gguf.readTensor(gguf.tensor(name), data);
    const values = new Float32Array(data.buffer, 0, type === 'F32' ? sizeBytes / 4 : 0);
    const round = Math.fround;
    if (isShiftedNorm(name, kind)) values.forEach((value, i) => (values[i] = round(value - 1) + 1));
    if (name.endsWith('.ssm_a'))
      values.forEach((value, i) => (values[i] = -Math.exp(round(Math.log(Math.abs(value))))));
    return { name, type, dims, data };
  });
  const sink = createMemorySink();
  writeGguf({ metadata: gguf.entries, tensors }, sink);
  return sink.toBytes();
}
