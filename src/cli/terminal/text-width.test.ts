import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { cutToWidth, displayWidth, padToWidth, wrapToWidth } from './text-width.ts';

test.each([
  ['abc', 3],
  ['Grüße', 5],
  ['e\u0301', 1], // letter and combining accent
  ['世界', 4],
  ['한글', 4],
  ['ｆｕｌｌ', 8],
  ['👍', 2],
  ['👍🏽', 2], // with a skin tone
  ['👩‍👩‍👧', 2], // three people and two joiners
  ['🇩🇪', 2], // two regional indicators
  ['❤️', 2], // with an emoji variation selector
  ['שלום', 4],
  ['a\u200db', 2],
  ['', 0],
])('%j takes %i columns', (text, width) => {
  expect(displayWidth(text)).toBe(width);
});

test('cuts to the width with an ellipsis, never inside a character', () => {
  expect(cutToWidth('abcdef', 6)).toBe('abcdef');
  expect(cutToWidth('abcdefg', 6)).toBe('abcde…');
  expect(cutToWidth('世界世界', 5)).toBe('世界…');
  expect(cutToWidth('世界世界', 6)).toBe('世界…'); // no width left for the ellipsis after the third
  expect(cutToWidth('👩‍👩‍👧👩‍👩‍👧', 3)).toBe('👩‍👩‍👧…');
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 1, max: 30 }), (text, columns) => {
      const cut = cutToWidth(text, columns);
      expect(displayWidth(cut)).toBeLessThanOrEqual(columns);
      if (displayWidth(text) <= columns) expect(cut).toBe(text);
      else expect(cut.endsWith('…') && text.startsWith(cut.slice(0, -1))).toBe(true);
    }),
  );
});

test('cuts a megabyte of combining marks before measuring it', () => {
  expect(cutToWidth(`a${'\u0301'.repeat(1 << 20)}`, 10).length).toBeLessThanOrEqual(162);
});

test('pads by columns, not by characters', () => {
  expect(padToWidth('世界', 6)).toBe('世界  ');
  expect(padToWidth('long', 2)).toBe('long');
});

test('wraps at spaces, and inside words longer than a line', () => {
  expect(wrapToWidth('one two three', 8)).toEqual(['one two', 'three']);
  expect(wrapToWidth('abcdefghij kl', 4)).toEqual(['abcd', 'efgh', 'ij', 'kl']);
  expect(wrapToWidth('世界世界', 5)).toEqual(['世界', '世界']);
  expect(wrapToWidth('', 10)).toEqual(['']);
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 2, max: 30 }), (text, columns) => {
      const lines = wrapToWidth(text, columns);
      for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
      expect(lines.join('').replaceAll(' ', '')).toBe(text.replaceAll(' ', ''));
    }),
  );
});
