import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../../core/byte-source.ts';
import { createRandom } from '../../core/random.ts';
import { createMemorySink } from '../header-writer.ts';
import { openGguf } from '../reader.ts';
import { openSafetensors, type SafetensorsFile } from '../safetensors.ts';
import type { GgufFile } from '../types.ts';
import { writeGguf } from '../writer.ts';
import { convertSafetensors } from './convert-checkpoint.ts';
import type { HfCheckpoint } from './hf-checkpoint.ts';

const config = {
  model_type: 'llama',
  hidden_size: 8,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  num_hidden_layers: 1,
  intermediate_size: 12,
  vocab_size: 6,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
};
const HEAD = 4;
const shapes: Record<string, number[]> = {
  'model.embed_tokens.weight': [6, 8],
  'model.layers.0.input_layernorm.weight': [8],
  'model.layers.0.self_attn.q_proj.weight': [8, 8],
  'model.layers.0.self_attn.k_proj.weight': [4, 8],
  'model.layers.0.self_attn.v_proj.weight': [4, 8],
  'model.layers.0.self_attn.o_proj.weight': [8, 8],
  'model.layers.0.post_attention_layernorm.weight': [8],
  'model.layers.0.mlp.gate_proj.weight': [12, 8],
  'model.layers.0.mlp.up_proj.weight': [12, 8],
  'model.layers.0.mlp.down_proj.weight': [8, 12],
  'model.norm.weight': [8],
  'lm_head.weight': [6, 8],
};

/** One F32 file with tensors of these shapes; floats are seeded by the order of names. */
function shard(shapes: Record<string, number[]>, dtype = 'F32', name = 'm.safetensors'): SafetensorsFile {
  const random = createRandom(7);
  const header: Record<string, object> = {};
  const data: number[] = [];
  const bytesPer = dtype === 'F32' ? 4 : 2;
  for (const [tensor, shape] of Object.entries(shapes)) {
    const begin = data.length * bytesPer;
    for (let i = shape.reduce((a, b) => a * b, 1); i > 0; i--) data.push(random.next() - 0.5);
    header[tensor] = { dtype, shape, data_offsets: [begin, data.length * bytesPer] };
  }
  const floats = new Uint8Array(Float32Array.from(data).buffer);
  // bfloat16 is the upper half of a float.
  const bytes = dtype === 'F32' ? floats : floats.filter((_, i) => i % 4 >= 2);
  const json = new TextEncoder().encode(JSON.stringify(header));
  const prefix = new Uint8Array(BigUint64Array.of(BigInt(json.length)).buffer);
  return openSafetensors(createMemorySource(Uint8Array.from([...prefix, ...json, ...bytes]), name));
}

function convert(checkpoint: HfCheckpoint, options: object = { type: 'F32' }): GgufFile {
  const sink = createMemorySink();
  writeGguf(convertSafetensors(checkpoint, options), sink);
  return openGguf(createMemorySource(sink.toBytes()));
}

function readFloats(file: GgufFile | SafetensorsFile, name: string): Float32Array {
  const info = file.tensor(name) as never;
  const bytes = new Uint8Array((info as { sizeBytes: number }).sizeBytes);
  file.readTensor(info, bytes);
  return new Float32Array(bytes.buffer);
}

const file = shard(shapes);
const without = (...names: string[]): Record<string, number[]> =>
  Object.fromEntries(Object.entries(shapes).filter(([name]) => !names.includes(name)));

test('gives tensors their GGUF names and keeps all floats except Q and K', () => {
  const result = convert({ config, files: [file] });
  const names: Record<string, string> = {
    'token_embd.weight': 'model.embed_tokens.weight',
    'blk.0.attn_norm.weight': 'model.layers.0.input_layernorm.weight',
    'blk.0.attn_v.weight': 'model.layers.0.self_attn.v_proj.weight',
    'blk.0.attn_output.weight': 'model.layers.0.self_attn.o_proj.weight',
    'blk.0.ffn_norm.weight': 'model.layers.0.post_attention_layernorm.weight',
    'blk.0.ffn_gate.weight': 'model.layers.0.mlp.gate_proj.weight',
    'blk.0.ffn_down.weight': 'model.layers.0.mlp.down_proj.weight',
    'blk.0.ffn_up.weight': 'model.layers.0.mlp.up_proj.weight',
    'output_norm.weight': 'model.norm.weight',
    'output.weight': 'lm_head.weight',
  };
  for (const [to, from] of Object.entries(names)) expect(readFloats(result, to), to).toEqual(readFloats(file, from));
  expect(result.tensors.size).toBe(12);
  expect(result.tensor('blk.0.ffn_down.weight').dims).toEqual([12, 8]);
});

test('computes the same attention scores with adjacent pairs as with halves', () => {
  const result = convert({ config, files: [file] });
  const input = Float32Array.from({ length: 8 }, (_, i) => Math.sin(i + 1));
  const project = (weights: Float32Array, head: number): number[] =>
    Array.from({ length: HEAD }, (_, row) =>
      input.reduce((sum, value, col) => sum + value * weights[(head * HEAD + row) * 8 + col]!, 0),
    );
  const rotate = (vector: number[], position: number, pairOf: (i: number) => [number, number]): number[] => {
    const out = [...vector];
    for (let i = 0; i < HEAD / 2; i++) {
      const angle = position * 10_000 ** ((-2 * i) / HEAD);
      const [a, b] = pairOf(i);
      out[a] = vector[a]! * Math.cos(angle) - vector[b]! * Math.sin(angle);
      out[b] = vector[a]! * Math.sin(angle) + vector[b]! * Math.cos(angle);
    }
    return out;
  };
  const score = (q: Float32Array, k: Float32Array, head: number, pairOf: (i: number) => [number, number]): number => {
    const query = rotate(project(q, head), 5, pairOf);
    const key = rotate(project(k, 0), 2, pairOf);
    return query.reduce((sum, value, i) => sum + value * key[i]!, 0);
  };
  for (let head = 0; head < 2; head++) {
    const before = score(
      readFloats(file, 'model.layers.0.self_attn.q_proj.weight'),
      readFloats(file, 'model.layers.0.self_attn.k_proj.weight'),
      head,
      (i) => [i, i + HEAD / 2],
    );
    const after = score(
      readFloats(result, 'blk.0.attn_q.weight'),
      readFloats(result, 'blk.0.attn_k.weight'),
      head,
      (i) => [2 * i, 2 * i + 1],
    );
    expect(after).toBeCloseTo(before, 12);
  }
});

test('reads shards as one checkpoint, bfloat16, and tied checkpoints without output matrix', () => {
  const embedding = { 'model.embed_tokens.weight': [6, 8] };
  const others = without('model.embed_tokens.weight', 'lm_head.weight');
  const tied = { ...config, tie_word_embeddings: true };
  const result = convert({
    config: tied,
    files: [shard(embedding, 'BF16'), shard({ ...others, 'model.layers.0.self_attn.rotary_emb.inv_freq': [2] })],
  });
  expect(result.tensors.has('output.weight')).toBe(false);
  const expected = readFloats(shard(embedding), 'model.embed_tokens.weight');
  readFloats(result, 'token_embd.weight').forEach((value, i) =>
    expect(Math.abs(value - expected[i]!)).toBeLessThan(2 ** -8),
  );
  expect(convert({ config: tied, files: [file] }).tensors.has('output.weight')).toBe(false);
});

test('converts rotation settings', () => {
  const linear = convert({ config: { ...config, rope_scaling: { type: 'linear', factor: 4 } }, files: [file] });
  expect(linear.metadata.string('llama.rope.scaling.type')).toBe('linear');
  expect(linear.metadata.number('llama.rope.scaling.factor')).toBe(4);
  const rope_scaling = {
    rope_type: 'llama3',
    factor: 8,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 16,
  };
  const stretched = convert({ config: { ...config, rope_scaling }, files: [file] });
  // Waves of 2π and 200π positions in a context of 16: the smooth step is (16/2π - 1) / 3, and complete.
  const smooth = (16 / (2 * Math.PI) - 1) / 3;
  expect([...readFloats(stretched, 'rope_freqs.weight')]).toEqual([Math.fround(1 / ((1 - smooth) / 8 + smooth)), 8]);
  const mistral = convert({ config: { ...config, model_type: 'mistral', sliding_window: 32 }, files: [file] });
  expect(mistral.metadata.number('llama.context_length')).toBe(32);
});

describe('rejects', () => {
  test.each<[string, object, Record<string, number[]>, string, string]>([
    ['another architecture', { model_type: 'rwkv' }, shapes, 'unsupported', 'model_type "rwkv"'],
    ['another activation', { hidden_act: 'gelu' }, shapes, 'unsupported', 'hidden_act'],
    ['attention biases', { attention_bias: true }, shapes, 'unsupported', 'attention_bias'],
    ['a quantized checkpoint', { quantization_config: {} }, shapes, 'unsupported', 'quantization_config'],
    ['another rotation', { rope_scaling: { rope_type: 'dynamic' } }, shapes, 'unsupported', 'rope scaling "dynamic"'],
    ['hidden_size 0', { hidden_size: 0 }, shapes, 'invalid_model_file', 'hidden_size must be an integer'],
    ['2^40 layers', { num_hidden_layers: 2 ** 40 }, shapes, 'invalid_model_file', 'num_hidden_layers'],
    [
      'heads that do not divide',
      { num_key_value_heads: 3 },
      shapes,
      'invalid_model_file',
      '2 heads over 3 key/value heads',
    ],
    ['a missing tensor', {}, without('model.norm.weight'), 'invalid_model_file', '"model.norm.weight" is missing'],
    ['no output matrix', {}, without('lm_head.weight'), 'invalid_model_file', '"lm_head.weight" is missing'],
    ['an unknown tensor', {}, { ...shapes, 'model.extra': [1] }, 'unsupported', 'tensor "model.extra" does not belong'],
    [
      'a tensor of another shape',
      { vocab_size: 7 },
      shapes,
      'invalid_model_file',
      '"model.embed_tokens.weight" is 6 x 8, config.json implies 7 x 8',
    ],
  ])('%s', (_what, change, shapes, code, message) => {
    const run = (): unknown => convert({ config: { ...config, ...change }, files: [shard(shapes)] });
    expect(run).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));
  });

  test('rejects the same tensor in two shards and a dtype that is not a float', () => {
    expect(() => convert({ config, files: [file, shard({ 'model.norm.weight': [8] })] })).toThrow(
      'is also in an earlier file',
    );
    const ints = shard(shapes, 'I16');
    expect(() => convert({ config, files: [ints] })).toThrow('has dtype I16; supported are F32, F16 and BF16');
  });
});
