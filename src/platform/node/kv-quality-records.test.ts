import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { KvQualityRecord } from '../../kv-cache/kv-policy.ts';
import { readKvQuality, writeKvQuality } from './kv-quality-records.ts';

const root = mkdtempSync(join(tmpdir(), 'ruvllm-kv-quality-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const folder = join(root, 'not', 'there');
const modelHash = '0f'.repeat(32);
const record: KvQualityRecord = {
  modelHash,
  tailTokens: 256,
  numTokens: 1776,
  floorKl: 1e-5,
  policies: { q8: { meanKl: 1e-4, p99Kl: 1e-3, top1: 0.99 }, q4: { meanKl: NaN, p99Kl: 0.1, top1: 0.9 } },
};

test('[KP3] a record is read as it was written, for its model only; the newest counts', () => {
  expect(readKvQuality(modelHash, folder)).toBeNull();
  writeKvQuality({ ...record, numTokens: 1 }, folder);
  writeKvQuality(record, folder);
  expect(readKvQuality(modelHash, folder)).toMatchObject(record);
  expect(readKvQuality('1f'.repeat(32), folder)).toBeNull();
  expect(readdirSync(folder)).toEqual([`${modelHash}.json`]);
});

test('[KP3] what is no record of this model and this version is as good as none', () => {
  writeKvQuality(record, folder);
  const path = join(folder, `${modelHash}.json`);
  const text = readFileSync(path, 'utf8');
  const changed = (change: object): string => JSON.stringify({ ...(JSON.parse(text) as object), ...change });
  for (const bad of [
    '',
    text.slice(0, -3),
    'null',
    '[]',
    changed({ version: 2 }),
    changed({ modelHash: '1f'.repeat(32) }),
    changed({ policies: { q8: { meanKl: 1, p99Kl: 1, top1: '1' } } }),
    changed({ policies: { q8: 5 } }),
    changed({ policies: { q5: record.policies.q8 } }),
    changed({ policies: null }),
    changed({ numTokens: '5' }),
    changed({ filler: 'x'.repeat(1 << 16) }),
  ]) {
    writeFileSync(path, bad);
    expect(readKvQuality(modelHash, folder), bad.slice(0, 200)).toBeNull();
  }
  writeFileSync(path, text);
  expect(readKvQuality(modelHash, folder)).not.toBeNull();
});

test('[KP3] only a content hash names a file', () => {
  for (const name of ['../../secrets', '', 'AB'.repeat(32)]) {
    expect(() => readKvQuality(name, folder)).toThrowError(/no content hash/);
    expect(() => writeKvQuality({ ...record, modelHash: name }, folder)).toThrowError(/no content hash/);
  }
});
