import { expect, test } from 'vitest';
import { createToyTemplate, createToyTokenizer } from '../../../test/support/toy-tokenizer.ts';
import { createExampleEncoder } from './encode-example.ts';

test('[LB18] an answer ends with the end token, one that is cut off does not', async () => {
  const tokenizer = createToyTokenizer();
  const context = { tokenizer, chatTemplate: createToyTemplate(), textThread: null, endIds: [1] };
  const encode = createExampleEncoder(context, 64);
  const whole = (await encode('ab', 'cd'))!;
  const cut = (await encode('ab', 'cd', { isCutOff: true }))!;
  expect(whole.tokenIds).toEqual([...Array.from(cut.tokenIds), 1]);
  expect(cut.numPromptTokens).toBe(whole.numPromptTokens);
});
