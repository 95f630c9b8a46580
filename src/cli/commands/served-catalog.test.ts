import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildRandomModel } from '../../../test/support/random-model.ts';
import type { Hub } from '../../hub/hub.ts';
import { isModelName, referencesOf } from '../../hub/model-names.ts';
import { createServedCatalog } from './served-catalog.ts';

const TINY = buildRandomModel({ architecture: 'llama', type: 'F32', seed: 1 });

function createFakes(content: string | Uint8Array = TINY, isHubReachable = true) {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-catalog-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'model.gguf');
  writeFileSync(path, content);
  const requests: string[] = [];
  const hub = {
    expandName: async (name: string) => referencesOf(name),
    isHubReachable: async () => isHubReachable,
    listModels: async () => [{ reference: 'a/b:Q8_0', sizeBytes: 7, modifiedMs: 5, path, sha256: 'x' }],
    async resolveModelPath(reference: string) {
      requests.push(reference);
      return path;
    },
    async pullModel(reference: string, { isFromClient }: { isFromClient?: boolean }) {
      expect(isFromClient).toBe(true); // neither local files nor private addresses
      requests.push(reference);
      return { path, sizeBytes: 7, isDownloaded: true };
    },
  } as unknown as Hub;
  return { requests, path, catalog: createServedCatalog(hub, {}, () => ({})) };
}
const pulling = { signal: new AbortController().signal, onProgress: () => {} };

test('opens cached models by reference without revealing their paths', async () => {
  const { catalog, requests, path } = createFakes();
  expect(await catalog.list()).toEqual([
    { reference: 'a/b:Q8_0', sizeBytes: 7, requiredBytes: expect.any(Number), modifiedMs: 5 },
  ]);
  expect(await catalog.open('a/b:Q8_0', null)).toMatchObject({
    id: 'a/b:Q8_0',
    aliases: [],
    fileBytes: TINY.byteLength,
  });
  expect(await catalog.open('npm:x@1.0.0', 'mine')).toMatchObject({ id: 'mine' });
  expect(JSON.stringify(await catalog.pull('hf:a/b', pulling))).not.toContain(path);
  // hf: keeps a local file of the same name from being opened.
  expect(requests).toEqual(['hf:a/b:Q8_0', 'npm:x@1.0.0', 'hf:a/b']);
  expect(catalog.freeBytes()).toBeGreaterThan(0);
});

test('a model requires its weights, KV pages and buffers; a file that is no model has no figure', async () => {
  const [listed] = await createFakes().catalog.list();
  const opened = await createFakes().catalog.open('a/b:Q8_0', null);
  expect(opened.sizeBytes).toBe(listed!.requiredBytes);
  expect(opened.sizeBytes).toBeGreaterThan(TINY.byteLength);
  expect((await createFakes().catalog.open('a/b', null, 16)).sizeBytes).toBeLessThan(opened.sizeBytes!);
  const broken = createFakes('not a model').catalog;
  expect((await broken.list())[0]!.requiredBytes).toBeNull();
  expect((await broken.open('a/b:Q8_0', null)).sizeBytes).toBeNull();
});

test('suggests models with a download, memory and speed; without the hub those from npm', async () => {
  const { models } = await createFakes().catalog.suggest();
  expect(models.length).toBeGreaterThan(8);
  for (const { name, sizeBytes, requiredBytes, tokensPerSecond } of models) {
    expect(isModelName(name) && referencesOf(name), name).not.toBeNull();
    expect(requiredBytes).toBeGreaterThan(sizeBytes);
    expect(tokensPerSecond).toBeGreaterThan(0);
  }
  const speeds = models.toSorted((a, b) => a.sizeBytes - b.sizeBytes).map(({ tokensPerSecond }) => tokensPerSecond);
  expect(speeds).toEqual(speeds.toSorted((a, b) => b - a));
  const offline = await createFakes(TINY, false).catalog.suggest();
  expect(offline.isHubReachable).toBe(false);
  expect(offline.models.map(({ name, sizeBytes }) => [name, sizeBytes])).toEqual([['tinyllama', 322_591_712]]);
});

test('rejects local paths', async () => {
  const { catalog, requests } = createFakes();
  for (const path of ['/etc/passwd', './model.gguf', '../x', '~/model.gguf', 'models/x.gguf', 'C:\\x', '']) {
    await expect(catalog.open(path, null), path).rejects.toMatchObject({ code: 'invalid_option' });
    await expect(catalog.pull(path, pulling), path).rejects.toMatchObject({ code: 'invalid_option' });
  }
  expect(requests).toEqual([]);
});
