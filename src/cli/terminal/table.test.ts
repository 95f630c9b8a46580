import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { layDetails, layTable } from './table.ts';
import { displayWidth } from './text-width.ts';

const ROWS = [
  ['MODEL', 'SIZE', 'FILE'],
  ['owner/a-rather-long-name:Q4_K_M', '1.5 GiB', 'a-rather-long-name-of-a-file-q4_k_m.gguf'],
  ['世界/モデル', '12 B', 'x'],
];

test('pads all but the last column', () => {
  expect(layTable(ROWS, 100)).toEqual([
    'MODEL                            SIZE     FILE',
    'owner/a-rather-long-name:Q4_K_M  1.5 GiB  a-rather-long-name-of-a-file-q4_k_m.gguf',
    '世界/モデル                      12 B     x',
  ]);
});

test('cuts the widest columns to fit', () => {
  expect(layTable(ROWS, 50)).toEqual([
    'MODEL                 SIZE     FILE',
    'owner/a-rather-long…  1.5 GiB  a-rather-long-name…',
    '世界/モデル           12 B     x',
  ]);
});

test('cuts nothing without a terminal, and does not pad to the width of a huge cell', () => {
  const huge = 'x'.repeat(1 << 20);
  const lines = layTable([['a', 'b'], [huge, 'c'], ['dd', 'e']], null); // prettier-ignore
  expect(lines).toEqual(['a   b', `${huge}  c`, 'dd  e']);
});

test('never exceeds the width of the terminal', () => {
  const cells = fc.array(fc.string({ unit: 'grapheme' }), { minLength: 4, maxLength: 4 });
  fc.assert(
    fc.property(fc.array(cells, { minLength: 1 }), fc.integer({ min: 20, max: 200 }), (rows, columns) => {
      for (const line of layTable(rows, columns)) expect(displayWidth(line)).toBeLessThanOrEqual(columns);
    }),
  );
});

test('wraps details below their value', () => {
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
