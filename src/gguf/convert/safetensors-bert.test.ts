import { describe, expect, test } from 'vitest';
import { createMemorySource } from '../../core/byte-source.ts';
import { createMemorySink } from '../header-writer.ts';
import { openGguf } from '../reader.ts';
import { openSafetensors, type SafetensorsFile } from '../safetensors.ts';
import type { GgufFile } from '../types.ts';
import { writeGguf } from '../writer.ts';
import { convertSafetensorsBert } from './safetensors-bert.ts';

const config = {
  model_type: 'bert',
  hidden_act: 'gelu',
  hidden_size: 8,
  num_attention_heads: 2,
  num_hidden_layers: 1,
  intermediate_size: 12,
  vocab_size: 9,
  max_position_embeddings: 16,
  type_vocab_size: 2,
  layer_norm_eps: 1e-12,
};
const layer = 'encoder.layer.0.';
const shapes: Record<string, number[]> = {
  'embeddings.word_embeddings.weight': [9, 8],
  'embeddings.position_embeddings.weight': [16, 8],
  'embeddings.token_type_embeddings.weight': [2, 8],
  'embeddings.LayerNorm.weight': [8],
  'embeddings.LayerNorm.bias': [8],
  ...Object.fromEntries(
    (
      [
        ['attention.self.query', [8, 8]],
        ['attention.self.key', [8, 8]],
        ['attention.self.value', [8, 8]],
        ['attention.output.dense', [8, 8]],
        ['attention.output.LayerNorm', [8]],
        ['intermediate.dense', [12, 8]],
        ['output.dense', [8, 12]],
        ['output.LayerNorm', [8]],
      ] as const
    ).flatMap(([name, shape]) => [
      [`${layer}${name}.weight`, [...shape]],
      [`${layer}${name}.bias`, [shape[0]]],
    ]),
  ),
};
const tokenizerJson = {
  added_tokens: ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map((content, id) => ({ id, content, special: true })),
  normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, lowercase: true },
  model: {
    type: 'WordPiece',
    continuing_subword_prefix: '##',
    vocab: { '[PAD]': 0, '[UNK]': 1, '[CLS]': 2, '[SEP]': 3, '[MASK]': 4, eat: 5, '##ing': 6, '!': 7 },
  },
};

/** Tensor t holds t, t + 0.25, t + 0.5 and so on. */
function shard(shapes: Record<string, number[]>): SafetensorsFile {
  const header: Record<string, object> = {};
  const data: number[] = [];
  for (const [index, [tensor, shape]] of Object.entries(shapes).entries()) {
    const begin = data.length * 4;
    for (let i = 0; i < shape.reduce((a, b) => a * b, 1); i++) data.push(index + i / 4);
    header[tensor] = { dtype: 'F32', shape, data_offsets: [begin, data.length * 4] };
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const prefix = new Uint8Array(BigUint64Array.of(BigInt(json.length)).buffer);
  const bytes = [...prefix, ...json, ...new Uint8Array(Float32Array.from(data).buffer)];
  return openSafetensors(createMemorySource(Uint8Array.from(bytes), 'm.safetensors'));
}

type Checkpoint = Parameters<typeof convertSafetensorsBert>[0];
function convert(checkpoint: Checkpoint, options: object = { type: 'F32' }): GgufFile {
  const sink = createMemorySink();
  writeGguf(convertSafetensorsBert(checkpoint, options), sink);
  return openGguf(createMemorySource(sink.toBytes()));
}

function readFloats(file: GgufFile | SafetensorsFile, name: string): Float32Array {
  const info = file.tensor(name) as never;
  const bytes = new Uint8Array((info as { sizeBytes: number }).sizeBytes);
  file.readTensor(info, bytes);
  return new Float32Array(bytes.buffer);
}

test('gives tensors their GGUF names and keeps their floats, whatever prefix they have', () => {
  const pairs: Record<string, string> = {
    'token_embd.weight': 'embeddings.word_embeddings.weight',
    'position_embd.weight': 'embeddings.position_embeddings.weight',
    'token_types.weight': 'embeddings.token_type_embeddings.weight',
    'token_embd_norm.weight': 'embeddings.LayerNorm.weight',
    'token_embd_norm.bias': 'embeddings.LayerNorm.bias',
  };
  for (const [to, from] of Object.entries({
    attn_q: 'attention.self.query',
    attn_k: 'attention.self.key',
    attn_v: 'attention.self.value',
    attn_output: 'attention.output.dense',
    attn_output_norm: 'attention.output.LayerNorm',
    ffn_up: 'intermediate.dense',
    ffn_down: 'output.dense',
    layer_output_norm: 'output.LayerNorm',
  })) {
    for (const part of ['weight', 'bias']) pairs[`blk.0.${to}.${part}`] = `${layer}${from}.${part}`;
  }
  const extras = { 'embeddings.position_ids': [1, 16], 'pooler.dense.weight': [8, 8], 'pooler.dense.bias': [8] };
  for (const prefix of ['', 'bert.']) {
    const prefixed = Object.fromEntries(
      Object.entries({ ...shapes, ...extras }).map(([name, shape]) => [`${prefix}${name}`, shape]),
    );
    const head = prefix === '' ? {} : { 'cls.predictions.bias': [9] };
    const file = shard({ ...prefixed, ...head });
    const result = convert({ config, files: [file] });
    for (const [to, from] of Object.entries(pairs)) {
      expect(readFloats(result, to), to).toEqual(readFloats(file, `${prefix}${from}`));
    }
    expect(result.tensors.size).toBe(21);
  }
});

test('writes the metadata keys of the format', () => {
  const { metadata } = convert({ config, files: [shard(shapes)], tokenizerJson }, { type: 'F16', pooling: 'cls' });
  expect(metadata.string('general.architecture')).toBe('bert');
  expect(metadata.number('bert.context_length')).toBe(16);
  expect(metadata.number('bert.block_count')).toBe(1);
  expect(metadata.number('bert.feed_forward_length')).toBe(12);
  expect(metadata.number('bert.attention.head_count')).toBe(2);
  expect(metadata.number('bert.attention.layer_norm_epsilon')).toBe(Math.fround(1e-12));
  expect(metadata.boolean('bert.attention.causal')).toBe(false);
  expect(metadata.number('bert.pooling_type')).toBe(2);
  expect(metadata.number('tokenizer.ggml.token_type_count')).toBe(2);
});

test('keeps small tables exact and converts other tensors to the requested type', () => {
  const { tensors } = convert({ config, files: [shard(shapes)] }, { type: 'F16' });
  const types = Object.fromEntries([...tensors.values()].map(({ name, type }) => [name, type]));
  expect(types).toMatchObject({
    'token_embd.weight': 'F16',
    'blk.0.ffn_up.weight': 'F16',
    'blk.0.ffn_up.bias': 'F32',
    'position_embd.weight': 'F32',
    'token_types.weight': 'F32',
  });
});

test('marks tokens that begin a word, removes the prefix of tokens that continue one, and keeps control tokens', () => {
  const { metadata } = convert({ config, files: [shard(shapes)], tokenizerJson });
  expect(metadata.strings('tokenizer.ggml.tokens')).toEqual([
    '[PAD]',
    '[UNK]',
    '[CLS]',
    '[SEP]',
    '[MASK]',
    '\u2581eat',
    'ing',
    '\u2581!',
    '[PAD8]',
  ]);
  expect(Array.from(metadata.numbers('tokenizer.ggml.token_type'))).toEqual([3, 3, 3, 3, 3, 1, 1, 1, 5]);
  expect(metadata.number('tokenizer.ggml.bos_token_id')).toBe(2);
  expect(metadata.number('tokenizer.ggml.seperator_token_id')).toBe(3);
  expect(metadata.number('tokenizer.ggml.unknown_token_id')).toBe(1);
  expect(metadata.get('tokenizer.ggml.normalizer.lowercase')).toBeUndefined();
  const cased = { ...tokenizerJson, normalizer: { ...tokenizerJson.normalizer, lowercase: false } };
  const said = convert({ config, files: [shard(shapes)], tokenizerJson: cased }).metadata;
  expect(said.boolean('tokenizer.ggml.normalizer.lowercase')).toBe(false);
  expect(said.get('tokenizer.ggml.normalizer.strip_accents')).toBeUndefined();
});

describe('rejects', () => {
  const without = (name: string): Record<string, number[]> =>
    Object.fromEntries(Object.entries(shapes).filter(([other]) => other !== name));
  test.each<[string, object, Record<string, number[]>, string, string]>([
    ['another architecture', { model_type: 'roberta' }, shapes, 'unsupported', 'model_type "roberta"'],
    ['another activation', { hidden_act: 'gelu_new' }, shapes, 'unsupported', 'hidden_act "gelu_new"'],
    ['relative positions', { position_embedding_type: 'relative_key' }, shapes, 'unsupported', 'position_embedding'],
    ['a decoder', { is_decoder: true }, shapes, 'unsupported', 'is_decoder true'],
    [
      'heads that do not divide',
      { num_attention_heads: 3 },
      shapes,
      'invalid_model_file',
      'hidden_size 8 does not divide into 3',
    ],
    ['no layers', { num_hidden_layers: 0 }, shapes, 'invalid_model_file', 'num_hidden_layers'],
    ['a missing bias', {}, without(`${layer}output.dense.bias`), 'invalid_model_file', 'output.dense.bias" is missing'],
    [
      'an unknown tensor',
      {},
      { ...shapes, 'encoder.extra': [1] },
      'unsupported',
      '"encoder.extra" does not belong in a BERT',
    ],
    ['another shape', { vocab_size: 10 }, shapes, 'invalid_model_file', 'is 9 x 8, config.json implies 10 x 8'],
  ])('%s', (_what, change, shapes, code, message) => {
    const run = (): unknown => convert({ config: { ...config, ...change }, files: [shard(shapes)] });
    expect(run).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));
  });

  test.each<[string, object, string, string]>([
    ['another tokenizer', { model: { type: 'Unigram' } }, 'unsupported', 'only WordPiece'],
    ['another normalizer', { normalizer: { type: 'NFC' } }, 'unsupported', 'not a BertNormalizer'],
    [
      'a normalizer that keeps control characters',
      { normalizer: { ...tokenizerJson.normalizer, clean_text: false } },
      'unsupported',
      'must enable clean_text',
    ],
    [
      'a token beyond the vocabulary',
      { model: { ...tokenizerJson.model, vocab: { a: 9 } } },
      'invalid_model_file',
      '"a" has id 9, the model has 9',
    ],
    [
      'two tokens with one id',
      { model: { ...tokenizerJson.model, vocab: { a: 5, b: 5 } } },
      'invalid_model_file',
      '"a" and "b" share the id 5',
    ],
  ])('%s', (_what, change, code, message) => {
    const run = (): unknown =>
      convert({ config, files: [shard(shapes)], tokenizerJson: { ...tokenizerJson, ...change } });
    expect(run).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));
  });
});
