import { expect, test } from 'vitest';
import { formatBytes, formatCount, formatRate, formatSeconds } from './format.ts';

test('formats sizes', () => {
  expect([0, 1023, 1024, 1536, 322_591_712, 2 ** 40 * 2000].map(formatBytes)).toEqual([
    '0 B',
    '1023 B',
    '1.0 KiB',
    '1.5 KiB',
    '308 MiB',
    '2000 TiB',
  ]);
});

test('formats parameter counts', () => {
  expect([999, 260_032, 24_407_712, 1.1e9, 405e9].map(formatCount)).toEqual([
    '999',
    '260 K',
    '24.4 M',
    '1.1 B',
    '405 B',
  ]);
});

test('formats durations', () => {
  expect([-1, 0.4, 59.4, 60, 185, 7830].map(formatSeconds)).toEqual([
    '0 s',
    '0 s',
    '59 s',
    '1 min 00 s',
    '3 min 05 s',
    '2 h 10 min',
  ]);
});

test('formats rates', () => {
  expect([null, 9.87, 123.4].map(formatRate)).toEqual(['–', '9.9', '123']);
});
