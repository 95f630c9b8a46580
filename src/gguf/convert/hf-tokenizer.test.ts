import { describe, expect, test } from 'vitest';
import { createMetadata } from '../metadata.ts';
import type { Metadata } from '../types.ts';
import { convertHfTokenizer } from './hf-tokenizer.ts';

function convert(json: unknown, { vocabSize = 8, settings = {}, pre = null as string | null } = {}): Metadata {
  const config = { shape: { vocabSize }, bosId: 1, eosId: 2 };
  const entries = convertHfTokenizer({ tokenizerJson: json, tokenizerConfig: settings }, config, pre);
  return createMetadata(new Map(entries.map(({ key, value }) => [key, value])));
}
const list = (metadata: Metadata, key: string): number[] => Array.from(metadata.numbers(`tokenizer.ggml.${key}`));

const byteLevel = {
  model: { type: 'BPE', vocab: { a: 0, b: 3, Ġ: 4, ab: 5 }, merges: ['a b'] as unknown[] },
  pre_tokenizer: { type: 'ByteLevel', use_regex: true } as object,
  added_tokens: [
    { id: 1, content: '<s>', special: true },
    { id: 2, content: '<tool>', special: false },
  ],
};
const spm = {
  model: {
    type: 'BPE',
    byte_fallback: true,
    unk_token: '<unk>',
    vocab: { '<unk>': 0, '<s>': 1, '<0x0A>': 2, '▁t': 3, he: 4, '▁the': 5, t: 6, x: 7 },
    // Two merges produce "▁the"; only the first counts.
    merges: [
      ['▁', 't'],
      ['▁t', 'he'],
      ['▁', 'the'],
      ['h', 'e'],
    ],
  },
  normalizer: { type: 'Sequence', normalizers: [{ type: 'Prepend' }, { type: 'Replace', content: '▁' }] },
  post_processor: { type: 'TemplateProcessing', single: [{ SpecialToken: {} }, { Sequence: {} }] },
  added_tokens: [{ id: 1, content: '<s>', special: true }],
};

test('keeps ids and merges of byte-level BPE and fills gaps with unused tokens', () => {
  const metadata = convert(byteLevel);
  expect(metadata.string('tokenizer.ggml.model')).toBe('gpt2');
  expect(metadata.string('tokenizer.ggml.pre')).toBe('gpt-2');
  expect(metadata.strings('tokenizer.ggml.tokens')).toEqual(['a', '<s>', '<tool>', 'b', 'Ġ', 'ab', '[PAD6]', '[PAD7]']);
  expect(list(metadata, 'token_type')).toEqual([1, 3, 4, 1, 1, 1, 5, 5]);
  expect(metadata.strings('tokenizer.ggml.merges')).toEqual(['a b']);
  expect(metadata.boolean('tokenizer.ggml.add_bos_token')).toBe(false);
  const pairs = { ...byteLevel, model: { ...byteLevel.model, merges: [['a', 'b']] } };
  expect(convert(pairs).strings('tokenizer.ggml.merges')).toEqual(['a b']);
});

test('scores SentencePiece BPE in the order of merges', () => {
  const metadata = convert(spm);
  expect(metadata.string('tokenizer.ggml.model')).toBe('llama');
  expect(list(metadata, 'scores')).toEqual([-1e9, 0, 0, 0, -2, -1, -1e9, -1e9]);
  expect(list(metadata, 'token_type')).toEqual([2, 3, 6, 1, 1, 1, 1, 1]);
  expect(metadata.boolean('tokenizer.ggml.add_bos_token')).toBe(true);
});

test('takes special ids from the tokenizer first, then from the model', () => {
  const settings = { eos_token: { content: 'ab' }, pad_token: 'b', add_bos_token: true, chat_template: '{{ x }}' };
  const metadata = convert(byteLevel, { settings });
  expect(metadata.number('tokenizer.ggml.bos_token_id')).toBe(1);
  expect(metadata.number('tokenizer.ggml.eos_token_id')).toBe(5);
  expect(metadata.number('tokenizer.ggml.padding_token_id')).toBe(3);
  expect(metadata.boolean('tokenizer.ggml.add_bos_token')).toBe(true);
  expect(metadata.string('tokenizer.chat_template')).toBe('{{ x }}');
});

test('detects the splitting rule, takes it from the option, or rejects it', () => {
  const split = (Regex: string) => ({
    ...byteLevel,
    pre_tokenizer: {
      type: 'Sequence',
      pretokenizers: [
        { type: 'Split', pattern: { Regex } },
        { type: 'ByteLevel', use_regex: false },
      ],
    },
  });
  const rule = (digits: string): string =>
    `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
  expect(convert(split(rule('\\p{N}{1,3}'))).string('tokenizer.ggml.pre')).toBe('llama-bpe');
  expect(convert(split(rule('\\p{N}'))).string('tokenizer.ggml.pre')).toBe('qwen2');
  expect(convert(split('x+'), { pre: 'mine' }).string('tokenizer.ggml.pre')).toBe('mine');
  expect(() => convert(split('x+'))).toThrow(
    expect.objectContaining({ code: 'unsupported', message: expect.stringContaining('"x+"') }),
  );
});

test('writes no tokenizer keys without tokenizer.json', () => {
  expect(convert(undefined).keys).toEqual([]);
});

describe('rejects', () => {
  const model = byteLevel.model;
  test.each<[string, unknown, string, string]>([
    ['a list', [], 'invalid_model_file', 'not an object'],
    ['no model', {}, 'invalid_model_file', 'model is not an object'],
    ['unigram', { model: { type: 'Unigram' } }, 'unsupported', 'model type "Unigram"'],
    ['neither kind', { ...byteLevel, pre_tokenizer: { type: 'Whitespace' } }, 'unsupported', 'neither'],
    [
      'an id that is too large',
      { ...byteLevel, model: { ...model, vocab: { a: 8 } } },
      'invalid_model_file',
      'token "a" has id 8, the model has 8 tokens',
    ],
    ['a negative id', { ...byteLevel, model: { ...model, vocab: { a: -1 } } }, 'invalid_model_file', 'id -1'],
    [
      'a shared id',
      { ...byteLevel, model: { ...model, vocab: { a: 0, c: 0 } } },
      'invalid_model_file',
      '"a" and "c" share the id 0',
    ],
    ['a merge of three', { ...byteLevel, model: { ...model, merges: ['a b c'] } }, 'invalid_model_file', 'merge 0'],
    [
      'a merge outside the vocabulary',
      { ...spm, model: { ...spm.model, merges: [['x', 'x']] } },
      'invalid_model_file',
      'merge of "x" and "x" is not in the vocabulary',
    ],
    [
      'merges that are not a list',
      { ...byteLevel, model: { ...model, merges: {} } },
      'invalid_model_file',
      'merges is not a list',
    ],
  ])('%s', (_what, json, code, message) => {
    expect(() => convert(json)).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) }));
  });
});
