import { describe, expect, test } from 'vitest';
import { createByteTokenizer } from '../../../../test/support/byte-tokenizer.ts';
import type { SampledToken } from '../../../sampling/types.ts';
import { createCompletionLogprobs } from './completion-logprobs.ts';

const tokenizer = createByteTokenizer();
const OTHER = tokenizer.idOf('<|other|>')!;
const tokensOf = (ids: readonly number[]): SampledToken[] =>
  ids.map((tokenId) => ({ tokenId, logprob: -1, top: [{ tokenId, logprob: -1 }] }));

describe('offsets of tokens', () => {
  // a, the two bytes of é, b, an invalid byte, c, a control token, d: the text is 'aéb\uFFFDcd'.
  const tokens = tokensOf([0x61, 0xc3, 0xa9, 0x62, 0xff, 0x63, OTHER, 0x64]);

  test('are where their text starts in the answer, whatever their spelling', () => {
    expect(createCompletionLogprobs(tokenizer)(tokens)).toMatchObject({
      tokens: ['a', 'bytes:\\xc3', 'bytes:\\xa9', 'b', 'bytes:\\xff', 'c', '<|other|>', 'd'],
      text_offset: [0, 1, 1, 2, 3, 4, 5, 5],
    });
  });

  test('are the same for an answer in pieces', () => {
    const write = createCompletionLogprobs(tokenizer);
    const offsets = [tokens.slice(0, 2), tokens.slice(2, 5), [], tokens.slice(5)].map(
      (piece) => write(piece)!.text_offset,
    );
    expect(offsets.flat()).toEqual([0, 1, 1, 2, 3, 4, 5, 5]);
  });

  test('are not written if not requested', () => {
    expect(createCompletionLogprobs(tokenizer)(null)).toBeNull();
  });
});

describe('log-probabilities', () => {
  const unscored = (tokenId: number) => ({ tokenId, logprob: null, top: [{ tokenId, logprob: -Infinity }] });

  test('are null for the first token of a prompt, and the lowest for others without one', () => {
    const write = (hasPrompt?: boolean) => createCompletionLogprobs(tokenizer)([0x61, 0x62].map(unscored), hasPrompt);
    expect(write(true)).toMatchObject({ token_logprobs: [null, -9999], top_logprobs: [null, { b: -9999 }] });
    expect(write()).toMatchObject({ token_logprobs: [-9999, -9999], top_logprobs: [{ a: -9999 }, { b: -9999 }] });
  });

  test('of a prompt keep the first one that is known', () => {
    const write = createCompletionLogprobs(tokenizer);
    expect(write(tokensOf([0x61]), true)).toMatchObject({ token_logprobs: [-1], top_logprobs: [{ a: -1 }] });
  });

  test('are spelled with a byte order mark, and placed after a leading space', () => {
    let wish: unknown;
    const spaced = {
      ...tokenizer,
      tokenBytes: (id: number) => new TextEncoder().encode(id === 0 ? ' ' : '\uFEFF'),
      createStreamDecoder: (options: unknown) => {
        wish = options;
        return { push: (id: number) => (id === 0 ? ' ' : '\uFEFF'), flush: () => '' };
      },
    };
    expect(createCompletionLogprobs(spaced)(tokensOf([0, 1, 0]))).toMatchObject({
      tokens: [' ', '\uFEFF', ' '],
      text_offset: [0, 1, 2],
    });
    expect(wish).toEqual({ keepLeadingSpace: true });
  });
});
