import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { describeKernelPack } from '../pack.contract.ts';
import { createReferencePackFactory } from './reference-pack.ts';

const root = join(import.meta.dirname, '../../..');

/** Its words are in no result. */
const ERRORS = join(root, 'src/core/errors.ts');

/** The files that a source loads, itself included; types alone decide no result. */
function addImports(file: string, files: Set<string>): void {
  if (files.has(file) || file === ERRORS) return;
  files.add(file);
  const text = readFileSync(file, 'utf8').replaceAll(/^(?:import|export) type [^;]*;/gm, '');
  for (const [, path] of text.matchAll(/^(?:(?:import|export) |\} )(?:[^;']* )?from '(\.[^']+)';/gm)) {
    addImports(join(dirname(file), path!), files);
  }
}

/** All that decides the result: the oracle, the suite, and what both load. */
function hashSources(): string {
  const hash = createHash('sha256');
  const files = new Set<string>();
  for (const name of ['reference/reference-pack.ts', 'pack.contract.ts'])
    addImports(join(root, 'src/kernels', name), files);
  for (const file of [...files].map((name) => relative(root, name).replaceAll(sep, '/')).toSorted()) {
    hash.update(`${file}\0`).update(readFileSync(join(root, file), 'utf8').replaceAll('\r\n', '\n'));
  }
  return hash.digest('hex');
}

// The oracle is plain JavaScript, which computes the same everywhere: once checked, it stays right until its sources change.
const hash = hashSources();
const isChecked = readFileSync(join(import.meta.dirname, 'checked.sha256'), 'utf8').trim() === hash;
const runs = campaign({ short: !isChecked, long: true });
if (!runs)
  console.log('the reference kernels have not changed since they were checked; npm run test:long checks them again');

// Only describing the suite makes its matrices, which takes seconds.
if (runs) {
  const factory = createReferencePackFactory();
  describe('the oracle', () => describeKernelPack('reference', () => factory));
}

test('the sources are those that were checked: once all tests above pass, write their hash into checked.sha256', () => {
  expect(readFileSync(join(import.meta.dirname, 'checked.sha256'), 'utf8').trim()).toBe(hash);
});
