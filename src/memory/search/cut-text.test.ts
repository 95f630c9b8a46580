import { expect, test } from 'vitest';
import { cutToBest } from './cut-text.ts';

const TEXT = 'Ant. Bee. Cat. Dog. Elk. Fox.';
const cut = (text: string, query: string, maxChars: number): string | null => {
  const range = cutToBest(text, query, (part) => part.length <= maxChars);
  return range === null ? null : text.slice(range.start, range.end);
};

test.each([
  ['cat', 4, 'Cat.'],
  ['cat', 9, 'Cat. Dog.'],
  ['cat', 13, 'Cat. Dog.'],
  ['cat', 14, 'Bee. Cat. Dog.'],
  ['cat', 19, 'Bee. Cat. Dog. Elk.'],
  ['ant', 14, 'Ant. Bee. Cat.'],
  ['fox', 14, 'Dog. Elk. Fox.'],
  ['fox', 1000, TEXT],
  ['none of them', 9, 'Ant. Bee.'],
])('[SE4] the sentences around "%s" that have %i characters', (query, maxChars, part) => {
  expect(cut(TEXT, query, maxChars)).toBe(part);
});

test('[SE4] a word of the question counts the more the rarer it is in the text', () => {
  expect(cut('The red hat. The blue hat. A red car. Green.', 'the blue red', 14)).toBe('The blue hat.');
});

test('[SE4] a sentence that is too long is cut after its last character that fits, never inside a pair', () => {
  expect(cut(TEXT, 'cat', 3)).toBe('Cat');
  expect(cut('a😀b', '', 3)).toBe('a😀');
  expect(cut('a😀b', '', 2)).toBe('a');
  expect(cut('😀', '', 1)).toBeNull();
  expect(cut(TEXT, 'cat', 0)).toBeNull();
  expect(cut(' \n\n ', 'cat', 9)).toBeNull();
});
