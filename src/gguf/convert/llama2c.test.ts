import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../../core/byte-source.ts';
import { createRandom } from '../../core/random.ts';
import { dequantizeRow } from '../../quant/index.ts';
import { createMemorySink } from '../header-writer.ts';
import { openGguf } from '../reader.ts';
import type { GgufFile } from '../types.ts';
import { writeGguf } from '../writer.ts';
import { convertLlama2c, type ConvertOptions } from './llama2c.ts';

const DIM = 32;
const FFN = 40;
const LAYERS = 2;
const HEADS = 4;
const KV_HEADS = 2;
const VOCAB = 261;
const CONTEXT = 8;
const KV_DIM = (DIM / HEADS) * KV_HEADS;
const NUM_FLOATS =
  VOCAB * DIM + LAYERS * (2 * DIM + 2 * DIM * DIM + 2 * DIM * KV_DIM + 3 * DIM * FFN) + DIM + CONTEXT * (DIM / HEADS);

function checkpoint(header = [DIM, FFN, LAYERS, HEADS, KV_HEADS, VOCAB, CONTEXT], numFloats = NUM_FLOATS): Uint8Array {
  const random = createRandom(1);
  const floats = Float32Array.from({ length: numFloats }, () => random.next() - 0.5);
  const bytes = new Uint8Array(28 + floats.byteLength);
  bytes.set(new Uint8Array(Int32Array.from(header).buffer));
  bytes.set(new Uint8Array(floats.buffer), 28);
  return bytes;
}

function tokenizer(spellByte: (byte: number) => string, edit: Record<number, readonly number[]> = {}): Uint8Array {
  const encoder = new TextEncoder();
  const tokens = [
    '<unk>',
    '\n<s>\n',
    '\n</s>\n',
    ...Array.from({ length: 256 }, (_, byte) => spellByte(byte)),
    ' the',
    'é',
  ];
  const chunks = tokens.map((token, id) => {
    const encoded = edit[id] ?? [...encoder.encode(token)];
    return [
      ...new Uint8Array(Float32Array.of(-id).buffer),
      ...new Uint8Array(Int32Array.of(encoded.length).buffer),
      ...encoded,
    ];
  });
  return Uint8Array.from([[6, 0, 0, 0], ...chunks].flat());
}
const hex = (byte: number): string => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`;

function convert(model: Uint8Array, vocabulary: Uint8Array, options?: Partial<ConvertOptions>): GgufFile {
  const sink = createMemorySink();
  writeGguf(convertLlama2c(createMemorySource(model, 'm.bin'), createMemorySource(vocabulary, 't.bin'), options), sink);
  return openGguf(createMemorySource(sink.toBytes()));
}

function floatsOf(file: GgufFile, name: string): Float32Array {
  const info = file.tensor(name);
  const bytes = new Uint8Array(info.sizeBytes);
  file.readTensor(info, bytes);
  const out = new Float32Array(info.numElements);
  for (let row = 0; row < info.numElements / info.dims[0]!; row++) {
    const byteOffset = (row * info.sizeBytes * info.dims[0]!) / info.numElements;
    dequantizeRow(info.type, bytes, out, info.dims[0]!, { byteOffset, valueOffset: row * info.dims[0]! });
  }
  return out;
}

test('copies every float of the checkpoint to its tensor', () => {
  const model = checkpoint();
  const weights = new Float32Array(model.slice(28).buffer);
  const file = convert(model, tokenizer(hex), { type: 'F32' });
  let at = 0;
  const expectNext = (name: string, dims: number[]): void => {
    const length = dims.reduce((product, dim) => product * dim, 1);
    expect(file.tensor(name).dims).toEqual(dims);
    expect(floatsOf(file, name), name).toEqual(weights.slice(at, at + length));
    at += length;
  };
  const expectLayers = (kind: string, dims: number[]): void => {
    for (let layer = 0; layer < LAYERS; layer++) expectNext(`blk.${layer}.${kind}.weight`, dims);
  };
  expectNext('token_embd.weight', [DIM, VOCAB]);
  expectLayers('attn_norm', [DIM]);
  expectLayers('attn_q', [DIM, DIM]);
  expectLayers('attn_k', [DIM, KV_DIM]);
  expectLayers('attn_v', [DIM, KV_DIM]);
  expectLayers('attn_output', [DIM, DIM]);
  expectLayers('ffn_norm', [DIM]);
  expectLayers('ffn_gate', [DIM, FFN]);
  expectLayers('ffn_down', [FFN, DIM]);
  expectLayers('ffn_up', [DIM, FFN]);
  expectNext('output_norm.weight', [DIM]);
  expect(at).toBe(weights.length - CONTEXT * (DIM / HEADS));
  expect(file.tensors.size).toBe(2 + 9 * LAYERS);
});

test('writes the dimensions as metadata', () => {
  const { metadata } = convert(checkpoint(), tokenizer(hex), { name: 'tiny' });
  const numbers = [
    'context_length',
    'embedding_length',
    'block_count',
    'feed_forward_length',
    'attention.head_count',
    'attention.head_count_kv',
    'rope.dimension_count',
    'vocab_size',
  ];
  expect(numbers.map((key) => metadata.number(`llama.${key}`))).toEqual([8, 32, 2, 40, 4, 2, 8, 261]);
  expect(metadata.string('general.architecture')).toBe('llama');
  expect(metadata.string('general.name')).toBe('tiny');
  expect(metadata.number('llama.attention.layer_norm_rms_epsilon')).toBe(Math.fround(1e-5));
});

test('reads the same vocabulary from both spellings of byte tokens', () => {
  for (const spell of [hex, (byte: number) => String.fromCharCode(byte)]) {
    const { metadata } = convert(checkpoint(), tokenizer(spell));
    const tokens = metadata.strings('tokenizer.ggml.tokens');
    expect(tokens.slice(0, 4)).toEqual(['<unk>', '<s>', '</s>', '<0x00>']);
    expect(tokens.slice(258)).toEqual(['<0xFF>', '\u2581the', 'é']);
    expect([...(metadata.numbers('tokenizer.ggml.token_type') as Int32Array)]).toEqual([
      2,
      3,
      3,
      ...Array.from({ length: 256 }, () => 6),
      1,
      1,
    ]);
    expect(metadata.numbers('tokenizer.ggml.scores')[260]).toBe(-260);
  }
});

test('converts matrices to the requested type, keeps vectors F32, and writes incomplete blocks as F16', () => {
  const model = checkpoint();
  const file = convert(model, tokenizer(hex), { type: 'Q8_0' });
  expect(file.tensor('blk.0.attn_q.weight').type).toBe('Q8_0');
  expect(file.tensor('blk.0.attn_norm.weight').type).toBe('F32');
  expect(file.tensor('blk.0.ffn_down.weight').type).toBe('F16');
  const exact = floatsOf(convert(model, tokenizer(hex), { type: 'F32' }), 'token_embd.weight');
  floatsOf(file, 'token_embd.weight').forEach((value, i) =>
    expect(Math.abs(value - exact[i]!)).toBeLessThan(0.5 / 127),
  );
});

test('reads a separate classifier if the vocabulary size is negative', () => {
  const header = [DIM, FFN, LAYERS, HEADS, KV_HEADS, -VOCAB, CONTEXT];
  const model = checkpoint(header, NUM_FLOATS + VOCAB * DIM);
  const file = convert(model, tokenizer(hex), { type: 'F32' });
  const expected = new Float32Array(model.slice(model.length - VOCAB * DIM * 4).buffer);
  expect(floatsOf(file, 'output.weight')).toEqual(expected);
});

describe('rejects', () => {
  const header = (index: number, value: number): Uint8Array => {
    const values = [DIM, FFN, LAYERS, HEADS, KV_HEADS, VOCAB, CONTEXT];
    values[index] = value;
    return checkpoint(values);
  };
  const t = tokenizer(hex);
  test.each<[string, Uint8Array, Uint8Array, string, string]>([
    ['a short header', new Uint8Array(27), t, 'invalid_model_file', 'at least 28 bytes, this one has 27'],
    ['a newer version', header(0, 0x616b3432), t, 'unsupported', 'checkpoint version 40'],
    [
      'a truncated file',
      checkpoint().subarray(0, -4),
      t,
      'invalid_model_file',
      `describes ${28 + NUM_FLOATS * 4} bytes, the file has ${24 + NUM_FLOATS * 4}`,
    ],
    ['dim 0', header(0, 0), t, 'invalid_model_file', 'dim at byte 0 must be 1 to 131072, got 0'],
    ['2^31-1 layers', header(2, 2 ** 31 - 1), t, 'invalid_model_file', 'n_layers at byte 8 must be'],
    ['heads that do not divide', header(3, 3), t, 'invalid_model_file', '3 heads and 2 KV heads do not divide'],
    ['vocabulary -2^31', header(5, -(2 ** 31)), t, 'invalid_model_file', 'vocab_size at byte 20 must be'],
    ['a truncated tokenizer', checkpoint(), t.subarray(0, -1), 'invalid_model_file', 'token 260 needs 2 bytes'],
    [
      'a tokenizer that is too long',
      checkpoint(),
      Uint8Array.of(...t, 0),
      'invalid_model_file',
      '261 tokens end at byte',
    ],
    [
      'a token longer than the maximum',
      checkpoint(),
      tokenizer(hex, { 259: [1, 2, 3, 4, 5, 6, 7] }),
      'invalid_model_file',
      'token 259 at byte 3',
    ],
    [
      'a token that is not UTF-8',
      checkpoint(),
      tokenizer(hex, { 260: [0xff] }),
      'invalid_model_file',
      'token 260 at byte',
    ],
    [
      'no byte tokens',
      checkpoint(),
      tokenizer(hex, { 100: [65, 66] }),
      'unsupported',
      'token 100 at byte 1402 must be the byte token of 97',
    ],
    ['an empty tokenizer', checkpoint(), new Uint8Array(0), 'invalid_model_file', 'longest token needs 4 bytes'],
  ])('%s', (_what, model, vocabulary, code, message) => {
    expect(() => convert(model, vocabulary)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });

  test('names the tensor and row of a NaN weight', () => {
    const model = checkpoint();
    new DataView(model.buffer).setFloat32(28 + 4 * DIM * 7, NaN, true);
    expect(() => convert(model, t)).toThrow('tensor "token_embd.weight", row 7: value NaN at index 0');
  });

  test('rejects unknown options and types', () => {
    expect(() => convert(checkpoint(), t, { kind: 'x' } as object)).toThrow('unknown option "kind"');
    expect(() => convert(checkpoint(), t, { type: 'Q9' as 'F32' })).toThrow('option "type" must be one of');
  });
});
