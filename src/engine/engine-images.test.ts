import { expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import { createMemorySpill } from '../../test/support/memory-spill.ts';
import { buildRandomModel } from '../../test/support/random-model.ts';
import { normals } from '../../test/support/random-values.ts';
import { loadBytes, testLimits } from '../../test/support/run-model.ts';
import { createMemorySource } from '../core/byte-source.ts';
import { openGguf } from '../gguf/index.ts';
import { readValues } from '../models/weight-loader.ts';
import type { SampledToken, Sampler } from '../sampling/types.ts';
import { createEngine, type EngineOptions } from './engine.ts';
import type { SequenceImage } from './types.ts';

const bytes = buildRandomModel({ architecture: 'llama', type: 'F32', seed: 3 });
const gguf = openGguf(createMemorySource(bytes));
const { dims } = gguf.tensor('token_embd.weight');
const [dim, vocabSize] = dims as [number, number];
const table = readValues(gguf, 'token_embd.weight', dims);
const PLACEHOLDER = 2;

const hashOf = (seed: number): string => seed.toString(16).padStart(64, '0');
const imageAt = (start: number, seed: number, numRows = 20): SequenceImage => ({
  start,
  numRows,
  hash: hashOf(seed),
  values: normals(numRows * dim, seed, 0.5),
});

/** Keeps the logits of each sampled row and chooses the best token. */
function createRecorder(): Sampler & { readonly rows: Float32Array[] } {
  const rows: Float32Array[] = [];
  return {
    rows,
    sample(logits): SampledToken {
      rows.push(logits.slice());
      return { tokenId: logits.indexOf(Math.max(...logits)), logprob: null, top: [] };
    },
  };
}

async function openEngine(maxBatchTokens = 32, options: Partial<EngineOptions> = {}) {
  const model = await loadBytes(bytes, { limits: { ...testLimits, maxBatchTokens } });
  const engine = createEngine(model, { maxContext: 128, now: () => 0, ...options });
  let nextId = 0;
  const ask = async (promptIds: readonly number[], images: readonly SequenceImage[] = []) => {
    const sampler = createRecorder();
    engine.add(engineRequest({ id: nextId++, promptIds, images, maxTokens: 3, sampler }));
    let cachedTokens = -1;
    while (engine.hasWork) {
      for (const event of await engine.step()) {
        if (event.type === 'failed') throw new Error(event.error.message);
        if (event.type === 'finished') cachedTokens = event.cachedTokens;
      }
    }
    engine.checkIntegrity();
    return { rows: sampler.rows, cachedTokens };
  };
  return { engine, ask };
}

const head = [1, 9, 30];
const tail = [40, 17, 8];
const around = (numRows: number): number[] => [...head, ...Array.from({ length: numRows }, () => PLACEHOLDER), ...tail];

test.each([32, 5, 1])(
  '[E39] rows of an image are inputs like the vectors of tokens, %i rows per step',
  async (rows) => {
    const tokens = Array.from({ length: 20 }, (_, i) => 3 + ((i * 7) % (vocabSize - 3)));
    const values = Float32Array.from(tokens.flatMap((id) => [...table.subarray(id * dim, (id + 1) * dim)]));
    const { engine, ask } = await openEngine(rows, { keepsPrefixes: false });
    const expected = await ask([...head, ...tokens, ...tail]);
    const image = { start: head.length, numRows: 20, hash: hashOf(1), values };
    expect((await ask(around(20), [image])).rows).toEqual(expected.rows);
    expect((await ask(around(20), [])).rows).not.toEqual(expected.rows);
    await engine.dispose();
  },
);

test('[E40] the same image is found in the prefix cache, another one is not', async () => {
  const { engine, ask } = await openEngine();
  const first = await ask(around(20), [imageAt(3, 1)]);
  const again = await ask(around(20), [imageAt(3, 1)]);
  expect(again.cachedTokens).toBe(25);
  expect(again.rows).toEqual(first.rows);
  const other = await ask(around(20), [imageAt(3, 2)]);
  expect(other.cachedTokens).toBe(3);
  expect(other.rows).not.toEqual(first.rows);
  // Neither does the text of placeholders share pages with an image.
  expect((await ask(around(20))).cachedTokens).toBe(3);
  const alone = await openEngine();
  expect((await alone.ask(around(20), [imageAt(3, 2)])).rows).toEqual(other.rows);
  const query = { tenant: 'tenant', promptIds: around(20), adapters: [] };
  expect(engine.cachedTokens({ ...query, images: [imageAt(3, 1)] })).toBe(25);
  expect(engine.cachedTokens({ ...query, images: [imageAt(3, 5)] })).toBe(3);
  await engine.dispose();
  await alone.engine.dispose();
});

test('[E40] the order of images counts', async () => {
  const { engine, ask } = await openEngine();
  const promptIds = [...head, ...around(20), ...around(20)];
  const forward = await ask(promptIds, [imageAt(6, 1), imageAt(32, 2)]);
  const backward = await ask(promptIds, [imageAt(6, 2), imageAt(32, 1)]);
  expect(backward.cachedTokens).toBe(6);
  expect(backward.rows).not.toEqual(forward.rows);
  expect((await ask(promptIds, [imageAt(6, 1), imageAt(32, 2)])).cachedTokens).toBe(promptIds.length - 1);
  await engine.dispose();
});

test('[E40] pages of an image on disk are found after a restart, by its content', async () => {
  const spill = createMemorySpill();
  const before = await openEngine(32, { spill: spill.open() });
  // Other images first, so that keys in memory differ between the two processes.
  await before.ask(around(20), [imageAt(3, 7)]);
  const first = await before.ask(around(20), [imageAt(3, 1)]);
  await before.engine.dispose();
  const after = await openEngine(32, { spill: spill.open() });
  const restored = await after.ask(around(20), [imageAt(3, 1)]);
  expect(restored.cachedTokens).toBe(16);
  expect(restored.rows).toEqual(first.rows);
  expect((await after.ask(around(20), [imageAt(3, 8)])).cachedTokens).toBe(3);
  await after.engine.dispose();
});

test('[E39] rejects an image of another width with both numbers', async () => {
  const { engine } = await openEngine();
  const image = { ...imageAt(3, 1), values: new Float32Array(20 * dim + 1) };
  const request = engineRequest({
    id: 1,
    promptIds: around(20),
    images: [image],
    maxTokens: 1,
    sampler: createRecorder(),
  });
  expect(() => engine.add(request)).toThrow(
    expect.objectContaining({ code: 'invalid_option', data: { numValues: 20 * dim + 1, embeddingDim: dim } }),
  );
  await engine.dispose();
});
