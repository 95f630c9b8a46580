import { expect, test } from 'vitest';
import { createLineJoiner } from './line-joiner.ts';

const joinAll = (...lines: (string | [string])[]): (string | null)[] => {
  const joiner = createLineJoiner();
  return [...lines.map((line) => (typeof line === 'string' ? joiner.push(line) : joiner.push(line[0], true))), joiner.flush()]; // prettier-ignore
};

test('a backslash at the end goes on', () => {
  expect(joinAll('one', 'two\\', 'three\\', 'four', '')).toEqual(['one', null, null, 'two\nthree\nfour', '', null]);
});

test('what was begun is not lost at the end of the input', () => {
  expect(joinAll('one\\')).toEqual([null, 'one']);
});

test('between three quotes everything is text, empty lines and backslashes, too', () => {
  expect(joinAll('"""', 'a', '', 'b\\', '"""', 'c')).toEqual([null, null, null, null, 'a\n\nb\\', 'c', null]);
  expect(joinAll('"""a', 'b"""')).toEqual([null, 'a\nb', null]);
  expect(joinAll('"""one line"""')).toEqual(['one line', null]);
  expect(joinAll('say """')).toEqual(['say """', null]); // only at the beginning
});

test('what is pasted waits for Enter', () => {
  expect(joinAll(['a'], ['b'], 'c')).toEqual([null, null, 'a\nb\nc', null]);
  expect(joinAll(['a'], [''], ['b'], '')).toEqual([null, null, null, 'a\n\nb', null]);
  expect(joinAll(['ends in a backslash\\'], '')).toEqual([null, 'ends in a backslash\\', null]);
});

test('what was begun can be dropped', () => {
  const joiner = createLineJoiner();
  joiner.push('"""');
  expect(joiner.isOpen).toBe(true);
  joiner.drop();
  expect(joiner.isOpen).toBe(false);
  expect(joiner.push('x')).toBe('x');
});
