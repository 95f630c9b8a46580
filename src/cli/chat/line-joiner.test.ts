import { expect, test } from 'vitest';
import { createLineJoiner } from './line-joiner.ts';

test('a backslash at the end joins a line with the next', () => {
  const joiner = createLineJoiner();
  expect(['a', 'b\\', '\\', 'c\\d', ''].map((line) => joiner.push(line))).toEqual(['a', null, null, 'b\n\nc\\d', '']);
  expect(joiner.flush()).toBe(null);
});

test('what is left at the end is not lost', () => {
  const joiner = createLineJoiner();
  joiner.push('a\\');
  expect(joiner.flush()).toBe('a');
  expect(joiner.flush()).toBe(null);
});
