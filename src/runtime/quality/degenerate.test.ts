import { expect, test } from 'vitest';
import { isLoop, whyDegenerate } from './degenerate.ts';

test.each([
  ['empty texts', { name: '', town: '  ' }],
  ['nulls', { name: null, tags: [null, ''] }],
  ['the same text everywhere', { a: 'string', b: 'string', c: ['String'] }],
  ['a loop', { text: 'so it is so it is so it is so it is so it is so it is' }],
  ['a loop without spaces', { text: 'aaaaaaaaaaaaaaaaaaaaaaaa' }],
])('[QE4] %s: no success', (_, value) => {
  expect(whyDegenerate(value)).not.toBeNull();
});

test.each([
  ['one empty text beside others', { name: 'Ada', middle: '' }],
  ['no members', {}],
  ['an empty list', { tags: [] }],
  ['numbers alone', { x: 0, y: 0, z: 0 }],
  ['false', { isMember: false }],
  ['two equal texts', { from: 'Rome', to: 'Rome' }],
])('[QE4] %s: may be an answer', (_, value) => {
  expect(whyDegenerate(value)).toBeNull();
});

test('[QE4] names and numbers with repeated letters are no loops', () => {
  for (const text of ['Mississippi', '1000000', 'hahaha', 'a, a, b']) expect(isLoop(text), text).toBe(false);
});
