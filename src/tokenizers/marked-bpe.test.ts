import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMetadata, type MetadataValue } from '../gguf/index.ts';
import { createTokenizer } from './index.ts';

const hex = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
const tokens: (readonly [text: string, type: number])[] = [
  ['<pad>', 3],
  ['<eos>', 3],
  ['<bos>', 3],
  ['<unk>', 2],
  ['<|tag>', 4],
  ...hex.map((text) => [text, 6] as const),
  ...['▁', 'a', 'b', 'c', 'é', '\n', '\n\n', '\n\n\n', 'ab', '▁a', '▁ab', '▁▁'].map((text) => [text, 1] as const),
  ...['b▁', 'ba', 'bab', 'éa', '<', '>', 'x'].map((text) => [text, 1] as const),
];
const values: Record<string, MetadataValue> = {
  'tokenizer.ggml.model': 'gemma4',
  'tokenizer.ggml.tokens': tokens.map(([text]) => text),
  'tokenizer.ggml.token_type': Int32Array.from(tokens, ([, type]) => type),
  'tokenizer.ggml.merges': ['a b', '▁ ab', '▁ ▁', 'b a', '▁ a', 'ba b', 'é a', 'b ▁', 'c c', '\n \n'],
  'tokenizer.ggml.bos_token_id': 2,
  'tokenizer.ggml.eos_token_id': 1,
};
const tokenizer = createTokenizer(createMetadata(new Map(Object.entries(values))));

// From llama.cpp, for a file with these tokens and merges.
test.each([
  ['a b', [262, 261, 263]],
  ['  ab', [261, 271]],
  ['\n\n\n\n', [267, 267]],
  ['\n\n\n', [268]],
  ['ab ab\nbab\n\n ccé😀', [269, 271, 266, 263, 269, 267, 261, 104, 104, 265, 245, 164, 157, 133]],
  [' é a', [261, 265, 270]],
])('encodes %j like llama.cpp', (text, ids) => {
  expect(tokenizer.encode(text)).toEqual(ids);
});

test('adds a BOS even if the file does not say so, and never encodes text as a control token', () => {
  expect(tokenizer.encode('a', { addSpecial: true })).toEqual([2, 262]);
  expect(tokenizer.encode('<eos>')).not.toContain(1);
  expect(tokenizer.encodeTemplate('a<eos>')).toEqual([262, 1]);
});

test('decodes to the original text', () => {
  const unit = fc.constantFrom('a', 'b', 'c', ' ', '\n', 'é', '😀', '<', '>', 'x', 'ß', '\t');
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 40 }), (text) => {
      expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    }),
  );
});
