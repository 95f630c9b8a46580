import { expect, test } from 'vitest';
import { createToyTemplate, createToyTokenizer } from '../../test/support/toy-tokenizer.ts';
import type { ChatMessage } from '../chat/types.ts';
import { encodePrompt, type Prompt } from './prompt.ts';

const tokenizer = createToyTokenizer();
const context = { tokenizer, chatTemplate: createToyTemplate() };
const encode = (prompt: Prompt, parseSpecial = false) => encodePrompt(prompt, context, { parseSpecial });
const hello: ChatMessage[] = [{ role: 'user', content: 'hi' }];

test('text gets BOS as the file asks', () => {
  expect(encode('ab')).toEqual([0, 4, 5]);
  const without = { tokenizer: createToyTokenizer({ addsBos: false }), chatTemplate: createToyTemplate() };
  expect(encodePrompt('ab', without, { parseSpecial: false })).toEqual([4, 5]);
});

test('text with special tokens parsed gets one BOS, not two', () => {
  expect(encode('<s>ab', true)).toEqual([0, 4, 5]);
  expect(encode('ab', true)).toEqual([0, 4, 5]);
});

test('a chat has exactly one BOS, spelled by the template or not', () => {
  const expected = [0, ...tokenizer.encode('user hi.')];
  expect(encode(hello)).toEqual(expected);
  const unspelled = { tokenizer, chatTemplate: createToyTemplate(false) };
  expect(encodePrompt(hello, unspelled, { parseSpecial: false })).toEqual(expected);
});

test('token ids are used as they are', () => {
  expect(encode([7, 8, 1])).toEqual([7, 8, 1]);
});

test('messages declared before the call need no annotation', () => {
  const messages = [{ role: 'user', content: 'hello' }]; // TypeScript widens the role to string
  expect(encode(messages)).toEqual(encode([{ role: 'user', content: 'hello' }]));
});

test('nothing to read is empty_prompt', () => {
  for (const prompt of ['', []])
    expect(() => encode(prompt)).toThrow(expect.objectContaining({ code: 'empty_prompt' }));
});

test('a lone surrogate is invalid_text with its index', () => {
  expect(() => encode('ab\ud800c')).toThrow(
    expect.objectContaining({ code: 'invalid_text', message: 'the prompt has a lone surrogate at index 2' }),
  );
  expect(() => encode([{ role: 'user', content: '\udc00' }])).toThrow(
    expect.objectContaining({ code: 'invalid_text', data: { index: 0 } }),
  );
});

test('other values are refused', () => {
  for (const prompt of [null, 5, { role: 'user' }, [hello[0], 5], [{ role: 'user' }], [null]]) {
    expect(() => encode(prompt as unknown as Prompt)).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  }
});
