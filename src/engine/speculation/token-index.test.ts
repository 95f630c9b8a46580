import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createTokenIndex } from './token-index.ts';

function indexOf(...texts: (readonly number[])[]) {
  const index = createTokenIndex();
  texts.forEach((text, i) => {
    if (i > 0) index.separate();
    for (const id of text) index.push(id);
  });
  return index;
}

describe('find', () => {
  test('finds the longest match, and of equal ones the newest', () => {
    const index = indexOf([1, 2, 3, 9, 8, 2, 3, 7, 5, 2, 3, 6]);
    expect(index.find([1, 2, 3])).toEqual({ end: 3, length: 3 });
    expect(index.find([0, 2, 3])).toEqual({ end: 11, length: 2 });
  });

  test('finds nothing for one matching token', () => {
    expect(indexOf([1, 2, 3, 4]).find([7, 3])).toBeNull();
  });

  test('ignores places without a following token, and those from the limit on', () => {
    const index = indexOf([1, 2, 3], [4, 1, 2]);
    expect(index.find([1, 2])).toEqual({ end: 2, length: 2 });
    expect(index.find([1, 2], 2)).toBeNull();
    expect(indexOf([5, 1, 2]).find([1, 2])).toBeNull();
  });

  test('no match and no continuation crosses the end of a text', () => {
    const index = indexOf([1, 2], [3, 4, 5]);
    expect(index.find([2, 3])).toBeNull();
    expect(index.after(1, 5)).toEqual([2]);
    expect(index.after(3, 2)).toEqual([3, 4]);
  });

  test('prefers the longest match to the newest among many of the same ending', () => {
    const question = [11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
    const ending = [90, 91, 92];
    const others = Array.from({ length: 50 }, (_, i) => [100 + i, 200 + i, ...ending, 300 + i]);
    const index = indexOf([...question, ...ending, 7], ...others);
    expect(index.after(index.find([...question, ...ending])!.end, 1)).toEqual([7]);
  });

  test('every match is one, also after the index has grown', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 900 }), { maxLength: 4 }),
        fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 40 }),
        (texts, query) => {
          const index = indexOf(...texts);
          const match = index.find(query);
          if (match === null) return;
          expect(match.end).toBeLessThan(index.length);
          for (let i = 0; i < match.length; i++) {
            expect(index.at(match.end - 1 - i)).toBe(query[query.length - 1 - i]);
          }
        },
      ),
    );
  });
});
