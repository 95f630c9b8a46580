// The engine of an encoder ends when it has nothing to embed, and the next text starts it again.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { importDist } from './support/import-dist.ts';
import { buildRandomModel } from './support/random-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-encoder-idle-'));
const path = join(folder, 'tiny.gguf');
const workers = new Set<Worker>();
let numStarted = 0;
const note = (worker: Worker): void => {
  numStarted++;
  workers.add(worker);
  worker.once('exit', () => workers.delete(worker));
};
beforeAll(() => {
  writeFileSync(path, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7 }));
  process.on('worker', note);
});
afterAll(() => {
  process.off('worker', note);
  rmSync(folder, { recursive: true, force: true });
});

test('an idle encoder has no thread, and gives the same vectors when it is back', async () => {
  const { openPooler } = await importDist<typeof import('../src/node/memory/model-embedder.ts')>('node/memory/model-embedder.js'); // prettier-ignore
  const pooler = openPooler(path, { kernels: 'wasm', numThreads: 1 }, 1);
  const texts = ['a zebra', 'in the zoo', 'with zoo keepers'];
  const first = await Promise.all(texts.map((text) => pooler.pool(text)));
  const numFirst = numStarted;
  expect(numFirst).toBeGreaterThan(0);
  await expect.poll(() => workers.size).toBe(0);
  expect(await Promise.all(texts.map((text) => pooler.pool(text)))).toEqual(first);
  expect(numStarted).toBe(2 * numFirst);
  await pooler.close();
  await expect(pooler.pool('more')).rejects.toMatchObject({ code: 'not_loaded' });
  expect(workers.size).toBe(0);
});
