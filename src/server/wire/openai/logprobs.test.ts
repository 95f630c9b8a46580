import { expect, test } from 'vitest';
import type { Tokenizer } from '../../../tokenizers/types.ts';
import { toChatLogprobs } from './logprobs.ts';

const TOKENS = ['a', '\uFEFFb', '\u2028'];
const tokenizer = {
  tokenBytes: (id: number) => (id < TOKENS.length ? new TextEncoder().encode(TOKENS[id]) : new Uint8Array(0)),
  piece: () => '</s>',
} as unknown as Tokenizer;

test('every token has its text and bytes, also with a byte order mark or without text', () => {
  const top = [0, 1, 2, 3].map((tokenId) => ({ tokenId, logprob: -tokenId }));
  const result = toChatLogprobs(
    [
      { tokenId: 1, logprob: -1, top },
      { tokenId: 3, logprob: null, top: [{ tokenId: 3, logprob: -Infinity }] },
    ],
    tokenizer,
  );
  const bom = { token: '\uFEFFb', bytes: [0xef, 0xbb, 0xbf, 0x62] };
  const end = { token: '</s>', bytes: null };
  expect(result).toEqual({
    content: [
      {
        ...bom,
        logprob: -1,
        top_logprobs: [
          { token: 'a', logprob: -0, bytes: [0x61] },
          { ...bom, logprob: -1 },
          { token: '\u2028', logprob: -2, bytes: [0xe2, 0x80, 0xa8] },
          { ...end, logprob: -3 },
        ],
      },
      { ...end, logprob: -9999, top_logprobs: [{ ...end, logprob: -9999 }] },
    ],
    refusal: null,
  });
});
