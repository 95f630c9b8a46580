import { expect, test } from 'vitest';
import { directionOf } from './direction.ts';
import { modelLabel } from './model-label.ts';
import { formatBytes, formatCountOf, formatNumber, formatShare } from './numbers.ts';
import { formatAgo, formatDuration } from './time.ts';
import { visibleText } from './visible-text.ts';

test('replaces characters that alter the rendering with symbols and keeps text of every script', () => {
  expect(visibleText('a\u001b[31mb\u0000\u007f')).toBe('a␛[31mb␀␡');
  expect(visibleText('exe.\u202Egnp\u202C \u2066x\u2069')).toBe('exe.⟦U+202E⟧gnp⟦U+202C⟧ ⟦U+2066⟧x⟦U+2069⟧');
  expect(visibleText('a\u2028b\u0085c\uFEFF')).toBe('a⟦U+2028⟧b⟦U+0085⟧c⟦U+FEFF⟧');
  expect(visibleText('a\r\nb\tc')).toBe('a\nb\tc');
  const words = 'שלום‏ مرحبا‎ 你好 👩‍👩‍👧 é';
  expect(visibleText(words)).toBe(words);
});

test('takes the text direction from the first letter', () => {
  expect(['hello', '123 שלום', 'مرحبا', '"¿Qué?', '', '   '].map(directionOf)).toEqual([
    'ltr',
    'rtl',
    'rtl',
    'ltr',
    'ltr',
    'ltr',
  ]);
});

test('picks the singular for a count of one', () => {
  expect([0, 1, 2].map((count) => formatCountOf(count, 'page'))).toEqual(['0 pages', '1 page', '2 pages']);
  expect([1, 2].map((count) => formatCountOf(count, 'entry', 'entries'))).toEqual(['1 entry', '2 entries']);
});

test('formats numbers and times with a readable unit', () => {
  expect([0, 1023, 1536, 2 ** 20, 150 * 2 ** 30, NaN].map(formatBytes)).toEqual([
    '0 B',
    '1023 B',
    '1.5 KiB',
    '1.0 MiB',
    '150 GiB',
    '–',
  ]);
  expect([1.234, 12.34, 123.4, Infinity].map(formatNumber)).toEqual(['1.23', '12.3', '123', '–']);
  expect(formatShare(0.4567)).toBe('45.7 %');
  expect([0.5, 12.34, 1500, 200_000, 7_500_000].map(formatDuration)).toEqual([
    '500 µs',
    '12.3 ms',
    '1.5 s',
    '3 min 20 s',
    '2 h 5 min',
  ]);
  expect([0, 30_000, 120_000, 86_400_000 * 2].map((ms) => formatAgo(-ms, 0))).toEqual([
    'now',
    '30 sec. ago',
    '2 min. ago',
    '2 days ago',
  ]);
});

test('modelLabel is the display name, with the id where two models share it', () => {
  const twins = [
    { id: 'a', display_name: 'Llama 1B' },
    { id: 'b', display_name: 'Llama 1B' },
  ];
  expect(modelLabel({ id: 'c', display_name: 'Qwen 2B' }, twins)).toBe('Qwen 2B');
  expect(twins.map((model) => modelLabel(model, twins))).toEqual(['Llama 1B (a)', 'Llama 1B (b)']);
  expect(modelLabel({ id: 'auto' }, twins)).toBe('auto');
});
