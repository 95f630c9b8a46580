import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type DiffPart, diffWords } from './text-diff.ts';

const sideOf = (parts: readonly DiffPart[], side: 'first' | 'second'): string =>
  parts.flatMap((part) => (part.side === side || part.side === 'both' ? [part.text] : [])).join('');

test('marks the words that differ', () => {
  expect(diffWords('The cat sleeps all day.', 'The dog sleeps all night.')).toEqual([
    { side: 'both', text: 'The ' },
    { side: 'first', text: 'cat ' },
    { side: 'second', text: 'dog ' },
    { side: 'both', text: 'sleeps all ' },
    { side: 'first', text: 'day.' },
    { side: 'second', text: 'night.' },
  ]);
  expect(diffWords('same', 'same')).toEqual([{ side: 'both', text: 'same' }]);
  expect(diffWords('', 'new')).toEqual([{ side: 'second', text: 'new' }]);
  expect(diffWords('', '')).toEqual([]);
});

test('the parts of each side are its text, and nothing that both have at the same place is marked', () => {
  const texts = fc.array(fc.constantFrom('a', 'b', ' ', '\n', 'ab'), { maxLength: 30 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(texts, texts, (first, second) => {
      const parts = diffWords(first, second);
      expect(sideOf(parts, 'first')).toBe(first);
      expect(sideOf(parts, 'second')).toBe(second);
      if (first === second) expect(parts.every(({ side }) => side === 'both')).toBe(true);
    }),
  );
});

test('texts that are too long to compare by words are still whole', () => {
  const first = Array.from({ length: 3000 }, (_, i) => `x${i} `).join('');
  const second = Array.from({ length: 3000 }, (_, i) => `y${i} `).join('');
  const parts = diffWords(`same ${first}`, `same ${second}`);
  expect(parts.map(({ side }) => side)).toEqual(['both', 'first', 'second']);
});
