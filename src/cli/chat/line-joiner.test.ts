import { expect, test } from 'vitest';
import { createLineJoiner } from './line-joiner.ts';

const joinAll = (...lines: (string | [string])[]): (string | null)[] => {
  const joiner = createLineJoiner();
  return [...lines.map((line) => (typeof line === 'string' ? joiner.push(line) : joiner.push(line[0], true))), joiner.flush()]; // prettier-ignore
};

test('continues a line that ends in a backslash', () => {
  expect(joinAll('one', 'two\\', 'three\\', 'four', '')).toEqual(['one', null, null, 'two\nthree\nfour', '', null]);
});

test('returns an unfinished text at the end of the input', () => {
  expect(joinAll('one\\')).toEqual([null, 'one']);
});

test('keeps empty lines and backslashes between triple quotes', () => {
  expect(joinAll('"""', 'a', '', 'b\\', '"""', 'c')).toEqual([null, null, null, null, 'a\n\nb\\', 'c', null]);
  expect(joinAll('"""a', 'b"""')).toEqual([null, 'a\nb', null]);
  expect(joinAll('"""one line"""')).toEqual(['one line', null]);
  expect(joinAll('say """')).toEqual(['say """', null]); // only at the start of a line
});

test('holds pasted lines until Enter', () => {
  expect(joinAll(['a'], ['b'], 'c')).toEqual([null, null, 'a\nb\nc', null]);
  expect(joinAll(['a'], [''], ['b'], '')).toEqual([null, null, null, 'a\n\nb', null]);
  expect(joinAll(['ends in a backslash\\'], '')).toEqual([null, 'ends in a backslash\\', null]);
});

test('discards an unfinished text', () => {
  const joiner = createLineJoiner();
  joiner.push('"""');
  expect(joiner.isOpen).toBe(true);
  joiner.drop();
  expect(joiner.isOpen).toBe(false);
  expect(joiner.push('x')).toBe('x');
});
