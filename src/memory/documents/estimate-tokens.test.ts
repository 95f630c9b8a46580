import { expect, test } from 'vitest';
import { estimateTokens } from './estimate-tokens.ts';

test.each([
  ['', 0],
  ['abcde', 1],
  ['abcdef', 2],
  ['ab cd', 2],
  ['azAZ0', 1],
  ['azAZ09', 2],
  ['a.', 2],
  ['`{@[/:', 6],
  [' \t\n\v\f\r\u00a0', 0],
  ['\b\u000e!', 3],
  ['a\u00a0b', 2],
  ['a\u00a1b', 1],
  ['\u00df\u10ff', 1],
  ['\u1100\u1100', 2],
  ['日本語', 3],
  ['\u0dff\u0dff', 1],
  ['\u0e00\u0e00', 2],
  ['\u0e7f\u0e7f', 2],
  ['\u0e80\u0e80', 1],
  ['ab日ab', 3],
])('%j has %i tokens', (text, numTokens) => {
  expect(estimateTokens(text)).toBe(numTokens);
});

test('a range has its own tokens', () => {
  expect(estimateTokens('abcdefghij', 5, 10)).toBe(1);
  expect(estimateTokens('ab cd!', 0, 5)).toBe(2);
  expect(estimateTokens('ab cd!', 3)).toBe(2);
});
