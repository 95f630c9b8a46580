import { expect, test } from 'vitest';
import { addUsage, type AnswerChunk, hasText, type LastChunk } from './answer-chunks.ts';

test.each([
  ['a', null, true],
  ['', [{}], true],
  ['', [], false],
  ['', null, false],
  ['', undefined, false],
])('whether a piece with the text "%s" and the log-probabilities %j has text', (text, textLogprobs, expected) => {
  expect(hasText({ text, textLogprobs } as unknown as AnswerChunk)).toBe(expected);
});

const lastOf = (choice: number, discardedTokens?: number): LastChunk => {
  const usage = { promptTokens: 10 + choice, cachedTokens: 4 + choice, completionTokens: 3, reasoningTokens: 2, acceptedDraftTokens: 1, rejectedDraftTokens: 5, discardedTokens }; // prettier-ignore
  return { choice, usage } as unknown as LastChunk;
};

test('usage adds up answers, but counts a prompt once however many answers it has', () => {
  const sum = { promptTokens: 22, cachedTokens: 10, completionTokens: 12, reasoningTokens: 8, acceptedDraftTokens: 4, rejectedDraftTokens: 20 }; // prettier-ignore
  expect(addUsage([lastOf(0), lastOf(1), lastOf(2), lastOf(3)], 2)).toEqual({ ...sum, discardedTokens: null });
  expect(addUsage([lastOf(0, 7), lastOf(1, 2), lastOf(2), lastOf(3)], 2).discardedTokens).toBe(9);
  expect(addUsage([lastOf(0, 0)], 1).discardedTokens).toBe(0);
});
