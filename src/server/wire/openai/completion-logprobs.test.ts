import { describe, expect, test } from 'vitest';
import { createByteTokenizer } from '../../../../test/support/spoken-model.ts';
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
