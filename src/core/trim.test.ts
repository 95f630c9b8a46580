import { expect, test } from 'vitest';
import { splitFirstWord, trimEndOf, trimStartOf } from './trim.ts';

test('removes the listed characters at one end only', () => {
  expect(trimEndOf('//a/b///', '/')).toBe('//a/b');
  expect(trimStartOf('//a/b///', '/')).toBe('a/b///');
  expect([trimEndOf('000', '0'), trimStartOf('000', '0'), trimEndOf('', '0')]).toEqual(['', '', '']);
});

test('splits a text at the first white space', () => {
  expect(splitFirstWord('set  a b\n')).toEqual(['set', 'a b\n']);
  expect(splitFirstWord('set')).toEqual(['set', '']);
  expect(splitFirstWord('')).toEqual(['', '']);
});
