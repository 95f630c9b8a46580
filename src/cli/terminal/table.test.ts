import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { layDetails, layTable } from './table.ts';
import { displayWidth } from './text-width.ts';

const ROWS = [
  ['MODEL', 'SIZE', 'FILE'],
  ['owner/a-rather-long-name:Q4_K_M', '1.5 GiB', 'a-rather-long-name-of-a-file-q4_k_m.gguf'],
  ['世界/モデル', '12 B', 'x'],
];

test('what fits is padded but for the last column', () => {
  expect(layTable(ROWS, 100)).toEqual([
    'MODEL                            SIZE     FILE',
    'owner/a-rather-long-name:Q4_K_M  1.5 GiB  a-rather-long-name-of-a-file-q4_k_m.gguf',
    '世界/モデル                      12 B     x',
  ]);
});

test('what does not fit is cut where it is widest', () => {
  expect(layTable(ROWS, 50)).toEqual([
    'MODEL                 SIZE     FILE',
    'owner/a-rather-long…  1.5 GiB  a-rather-long-name…',
    '世界/モデル           12 B     x',
  ]);
});

test('without a terminal nothing is cut, and a huge cell does not make the others huge', () => {
  const huge = 'x'.repeat(1 << 20);
  const lines = layTable([['a', 'b'], [huge, 'c'], ['dd', 'e']], null); // prettier-ignore
  expect(lines).toEqual(['a   b', `${huge}  c`, 'dd  e']);
});

test('no line is ever wider than the terminal, whatever the cells', () => {
  const cells = fc.array(fc.string({ unit: 'grapheme' }), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(cells, { minLength: 1 }), fc.integer({ min: 20, max: 200 }), (rows, columns) => {
      for (const line of layTable(rows, columns)) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
    }),
  );
});

test('details go on below their value', () => {
  expect(layDetails([['name', 'one two three four five six'], ['b', 'x']], 26)).toEqual([
    'name  one two three four',
    '      five six',
    'b     x',
  ]); // prettier-ignore
  expect(layDetails([['name', 'one two three four five six'], ['b', '']], null)).toEqual([
    'name  one two three four five six',
    'b',
  ]); // prettier-ignore
});
