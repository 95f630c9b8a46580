import { expect, test } from 'vitest';
import { kindName, oneLine } from './show.ts';

test('escapes a text and cuts it to one line', () => {
  expect(oneLine('a\n  b\tc ', 20)).toBe('a b c');
  expect(oneLine('\u001b[2Jx\u202ey', 40)).toBe('\\x1b[2Jx\\u{202e}y');
  expect(oneLine('x'.repeat(50), 10)).toBe(`${'x'.repeat(9)}…`);
  expect(oneLine('\u0007'.repeat(50), 10)).toHaveLength(10);
  expect(oneLine('世界'.repeat(50), 10)).toBe('世界世界…');
});

test('names audit entries as users know them', () => {
  expect(['witness', 'document'].map(kindName)).toEqual(['audit', 'document']);
});
