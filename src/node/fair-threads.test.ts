// Threads that several tenants share, with workers that take a while for each task.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { paintPng } from '../../test/support/make-png.ts';
import { buildRandomVision } from '../../test/support/random-vision.ts';
import { createToyTemplate, createToyTokenizer } from '../../test/support/toy-tokenizer.ts';
import { encodeImages } from '../runtime/prompt-images.ts';
import { createAsideText } from '../runtime/text/aside-text.ts';
import { MAX_WEIGHT_HERE } from '../runtime/text/text-thread.ts';
import { openTextThread } from './text/text-thread.ts';
import { openVisionThread } from './vision/vision-thread.ts';

const spawning = (result: string) => ({
  spawn: () =>
    new Worker(
      `const { parentPort } = require('node:worker_threads');
       parentPort.on('message', () => setTimeout(() => parentPort.postMessage({ result: ${result} }), 5));
       parentPort.postMessage('ready');`,
      { eval: true },
    ),
});

/** How many tasks end before that of a tenant who comes after 20 tasks of another one. */
async function countBefore(run: (tenant: string, number: number) => Promise<unknown>): Promise<number> {
  const ended: string[] = [];
  const tenants = [...Array.from({ length: 20 }, () => 'many'), 'one'];
  await Promise.all(tenants.map(async (tenant, number) => run(tenant, number).then(() => ended.push(tenant))));
  return ended.indexOf('one');
}

test('[TX7] a long text of a tenant waits for one more of another, who has 20', async () => {
  const textThread = openTextThread('no such file.gguf', null, spawning('{ lists: [], text: "x" }'));
  const aside = createAsideText({
    tokenizer: createToyTokenizer(),
    chatTemplate: createToyTemplate(),
    textThread,
  });
  const long = new Int32Array(MAX_WEIGHT_HERE + 1);
  expect(await countBefore((tenant) => aside.decode(long, { tenant }))).toBeLessThanOrEqual(2);
  await textThread.dispose();
});

test('[TX7] an image of a tenant waits for one more of another, who has 20', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-fair-'));
  const path = join(folder, 'mmproj.gguf');
  writeFileSync(path, buildRandomVision({ outputDim: 96 }));
  const tokenizer = { ...createToyTokenizer(), idOf: () => 7 };
  const options = { kernels: 'wasm', numThreads: 1, embeddingDim: 96, tokenizer } as const;
  const vision = openVisionThread(path, options, spawning('{ hash: "x", values: new Float32Array(1) }'));
  const images = (number: number) => [{ offset: 0, data: paintPng(4, 4, () => [number, 0, 0]) }];
  const encode = (tenant: string, number: number) =>
    encodeImages({ vision, tokenizer }, [{ role: 'user', content: '', images: images(number) }], [7], {
      signal: null,
      tenant,
    });
  expect(await countBefore(encode)).toBeLessThanOrEqual(2);
  await vision.dispose();
  rmSync(folder, { recursive: true });
});
