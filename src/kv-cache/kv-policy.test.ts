import { expect, test } from 'vitest';
import { choosePacking, KV_QUALITY_LIMITS, type KvPacking, type KvQualityRecord } from './kv-policy.ts';

const FLOOR = 2e-3;
const record = (meanKls: { q8?: number; q4?: number }): KvQualityRecord => ({
  modelHash: 'ab'.repeat(32),
  tailTokens: 256,
  numTokens: 1000,
  floorKl: FLOOR,
  policies: Object.fromEntries(
    Object.entries(meanKls).map(([name, meanKl]) => [name, { meanKl: FLOOR + meanKl, p99Kl: meanKl * 10, top1: 0.9 }]),
  ),
});
const { q8, q4 } = KV_QUALITY_LIMITS;
const good = record({ q8: q8 * 0.99, q4: q4 * 0.99 });
const badQ4 = record({ q8: q8 * 0.99, q4: q4 * 1.01 });
const bad = record({ q8: q8 * 1.01, q4: q4 * 1.01 });

test.each<[KvPacking, KvQualityRecord | null, string | null, RegExp]>([
  ['off', null, null, /^off$/],
  ['off', good, null, /^off$/],
  ['auto', null, 'q8', /^q8: not measured$/],
  ['q8', null, 'q8', /^q8: not measured$/],
  ['q4', null, 'q4', /^q4: not measured$/],
  ['auto', good, 'q8', /^q8: mean KL 2\.99e-3, with f32 pages 2\.00e-3, allowed difference 0\.001$/],
  ['q8', good, 'q8', /^q8: mean KL/],
  ['q4', good, 'q4', /^q4: mean KL 1\.19e-2, with f32 pages 2\.00e-3, allowed difference 0\.01$/],
  ['auto', badQ4, 'q8', /^q8: mean KL/],
  [
    'q4',
    badQ4,
    'q8',
    /^q4 not chosen: mean KL 1\.21e-2, with f32 pages 2\.00e-3, above the allowed difference of 0\.01; q8: mean KL 2\.99e-3/,
  ],
  [
    'auto',
    bad,
    null,
    /^q8 not chosen: mean KL 3\.01e-3, with f32 pages 2\.00e-3, above the allowed difference of 0\.001$/,
  ],
  ['q8', bad, null, /^q8 not chosen/],
  ['q4', bad, null, /^q4 not chosen.*; q8 not chosen/],
  ['q4', record({ q4: 1 }), 'q8', /^q4 not chosen.*; q8: not measured$/],
  ['q4', record({ q8: 1 }), 'q4', /^q4: not measured$/],
  ['auto', record({ q8: NaN }), null, /^q8 not chosen: mean KL NaN/],
  ['auto', { ...bad, tailTokens: 257 }, 'q8', /^q8: not measured$/],
  ['auto', { ...bad, numTokens: 499 }, 'q8', /^q8: not measured$/],
  ['auto', { ...bad, numTokens: 500 }, null, /^q8 not chosen/],
  ['auto', { ...good, floorKl: NaN }, null, /with f32 pages NaN/],
])('[KP1] [KP2] %s with %o', (wish, measured, packed, reason) => {
  const choice = choosePacking(wish, measured);
  expect(choice.packed).toBe(packed);
  expect(choice.reason).toMatch(reason);
});
