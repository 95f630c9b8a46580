import { expect, test } from 'vitest';
import { choosePacking, type KvPacking } from './kv-policy.ts';

test.each<[KvPacking, string | null, string]>([
  ['off', null, 'off'],
  ['auto', 'q8', 'q8 by default'],
  ['q8', 'q8', 'q8, as configured'],
  ['q4', 'q4', 'q4, as configured'],
])('[KP2] %s keeps older pages as %s', (packing, packed, reason) => {
  expect(choosePacking(packing)).toEqual({ packed, reason });
});
