import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createReferencePackFactory } from './reference-pack.ts';

const src = join(import.meta.dirname, '../..');

/** All that decides the result: the oracle, the suite, and the formats that both read. */
function hashSources(): string {
  const hash = createHash('sha256');
  const filesOf = (folder: string, recursive: boolean): string[] =>
    readdirSync(join(src, folder), { recursive, encoding: 'utf8' }).map((name) => join(folder, name));
  const files = [...filesOf('kernels', false), ...filesOf('kernels/reference', true), ...filesOf('quant', true)];
  for (const file of files.filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts')).toSorted()) {
    hash.update(`${file}\0`).update(readFileSync(join(src, file), 'utf8').replaceAll('\r\n', '\n'));
  }
  return hash.digest('hex');
}

// The oracle is plain JavaScript, which computes the same everywhere: once checked, it stays right until its sources change.
const hash = hashSources();
const isChecked = readFileSync(join(import.meta.dirname, 'checked.sha256'), 'utf8').trim() === hash;
const runs = campaign({ short: !isChecked, long: true });
if (!runs) console.log('the reference kernels have not changed since they were checked; npm run test:long checks them again');

describe.runIf(runs)('the oracle', () => {
  const factory = createReferencePackFactory();
  describeKernelPack('reference', () => factory);
});

test('the sources are those that were checked: once all tests above pass, write their hash into checked.sha256', () => {
  expect(readFileSync(join(import.meta.dirname, 'checked.sha256'), 'utf8').trim()).toBe(hash);
});
