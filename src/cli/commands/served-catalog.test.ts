import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Hub } from '../../hub/hub.ts';
import { createServedCatalog } from './served-catalog.ts';

function createFakes() {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-catalog-'));
  const path = join(folder, 'model.gguf');
  writeFileSync(path, 'not a model, and not opened');
  const asked: string[] = [];
  const hub = {
    listModels: async () => [{ reference: 'a/b:Q8_0', sizeBytes: 7, modifiedMs: 5, path, sha256: 'x' }],
    async resolveModelPath(reference: string) {
      asked.push(reference);
      return path;
    },
    async pullModel(reference: string) {
      asked.push(reference);
      return { path, sizeBytes: 7, isDownloaded: true };
    },
  } as unknown as Hub;
  return { asked, path, catalog: createServedCatalog(hub, () => ({})) };
}
const pulling = { signal: new AbortController().signal, onProgress: () => {} };

test('a reference is a model of the cache; nothing says where its file lies', async () => {
  const { catalog, asked, path } = createFakes();
  expect(await catalog.list()).toEqual([{ reference: 'a/b:Q8_0', sizeBytes: 7, modifiedMs: 5 }]);
  expect(await catalog.open('a/b:Q8_0', null)).toMatchObject({ id: 'a/b:Q8_0', aliases: [], sizeBytes: 27 });
  expect(await catalog.open('npm:x@1.0.0', 'mine')).toMatchObject({ id: 'mine' });
  expect(JSON.stringify(await catalog.pull('hf:a/b', pulling))).not.toContain(path);
  // As a reference of the hub, also where a file of this name lies in the folder of the process.
  expect(asked).toEqual(['hf:a/b:Q8_0', 'npm:x@1.0.0', 'hf:a/b']);
  expect(catalog.freeBytes()).toBeGreaterThan(0);
});

test('no path of this machine is opened or pulled', async () => {
  const { catalog, asked } = createFakes();
  for (const path of ['/etc/passwd', './model.gguf', '../x', '~/model.gguf', 'models/x.gguf', 'C:\\x', '']) {
    await expect(catalog.open(path, null), path).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(catalog.pull(path, pulling), path).rejects.toMatchObject({ code: 'invalid_option' });
  }
  expect(asked).toEqual([]);
});
