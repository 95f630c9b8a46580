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
  const requests: string[] = [];
  const hub = {
    listModels: async () => [{ reference: 'a/b:Q8_0', sizeBytes: 7, modifiedMs: 5, path, sha256: 'x' }],
    async resolveModelPath(reference: string) {
      requests.push(reference);
      return path;
    },
    async pullModel(reference: string) {
      requests.push(reference);
      return { path, sizeBytes: 7, isDownloaded: true };
    },
  } as unknown as Hub;
  return { requests, path, catalog: createServedCatalog(hub, () => ({})) };
}
const pulling = { signal: new AbortController().signal, onProgress: () => {} };

test('opens cached models by reference without revealing their paths', async () => {
  const { catalog, requests, path } = createFakes();
  expect(await catalog.list()).toEqual([{ reference: 'a/b:Q8_0', sizeBytes: 7, modifiedMs: 5 }]);
  expect(await catalog.open('a/b:Q8_0', null)).toMatchObject({ id: 'a/b:Q8_0', aliases: [], sizeBytes: 27 });
  expect(await catalog.open('npm:x@1.0.0', 'mine')).toMatchObject({ id: 'mine' });
  expect(JSON.stringify(await catalog.pull('hf:a/b', pulling))).not.toContain(path);
  // hf: keeps a local file of the same name from being opened.
  expect(requests).toEqual(['hf:a/b:Q8_0', 'npm:x@1.0.0', 'hf:a/b']);
  expect(catalog.freeBytes()).toBeGreaterThan(0);
});

test('rejects local paths', async () => {
  const { catalog, requests } = createFakes();
  for (const path of ['/etc/passwd', './model.gguf', '../x', '~/model.gguf', 'models/x.gguf', 'C:\\x', '']) {
    await expect(catalog.open(path, null), path).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(catalog.pull(path, pulling), path).rejects.toMatchObject({ code: 'invalid_option' });
  }
  expect(requests).toEqual([]);
});
