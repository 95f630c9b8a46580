// wasm/ has the kernels compiled from assembly/: who changes a source compiles them again.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';

const root = join(import.meta.dirname, '../../..');
const { compileWasm, hashWasmSources } = (await import(join(root, 'scripts/build-wasm.mjs'))) as {
  compileWasm(folder: string): Promise<void>;
  hashWasmSources(): string;
};

test('the kernels in wasm/ are of these sources; npm run build:wasm compiles them', () => {
  expect(readFileSync(join(root, 'wasm/sources.sha256'), 'utf8').trim()).toBe(hashWasmSources());
});

const isLong = campaign({ short: false, long: true });
if (!isLong) console.log('the WASM kernels are compiled and compared by npm run test:long');
test.runIf(isLong)('compiling them again gives the same bytes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-wasm-'));
  try {
    await compileWasm(folder);
    const names = readdirSync(folder);
    expect(names).toHaveLength(6);
    for (const name of names) {
      expect(readFileSync(join(folder, name)).equals(readFileSync(join(root, 'wasm', name))), name).toBe(true);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
