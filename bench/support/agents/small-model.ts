// The model of `npm start` in closed networks, TinyLlama 1.1B, through the library as a program uses it.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importBuilt } from '../dist.ts';

type Library = typeof import('../../../src/index.ts');

/** RUVLLM_BENCH_MODEL names another file. */
export async function findSmallModel(): Promise<string> {
  const named = process.env['RUVLLM_BENCH_MODEL'];
  const { DEFAULT_MODELS } =
    await importBuilt<typeof import('../../../src/hub/default-models.ts')>('hub/default-models');
  const { createHub } = await importBuilt<typeof import('../../../src/hub/hub.ts')>('hub/hub');
  const { createNodeHubPlatform } = await importBuilt<typeof import('../../../src/platform/node/process/hub-platform.ts')>('platform/node/process/hub-platform'); // prettier-ignore
  const reference = named ?? DEFAULT_MODELS.find(({ source }) => source === 'npm')!.reference;
  return createHub({ platform: createNodeHubPlatform() }).resolveModelPath(reference, { download: true });
}

/** The model with a memory of its own. */
export async function openSmallModel() {
  const { loadModel, openMemory } = await importBuilt<Library>('index');
  const path = await findSmallModel();
  const folder = await mkdtemp(join(tmpdir(), 'ruvllm-agents-'));
  const memory = await openMemory({ place: folder, modelPath: path });
  const model = await loadModel(path, { memory, modelName: 'small' });
  return {
    model,
    memory,
    async close() {
      await model.dispose();
      await memory.close();
      await rm(folder, { recursive: true });
    },
  };
}
export type SmallModel = Awaited<ReturnType<typeof openSmallModel>>;

/** Runs tasks side by side, `width` at a time, in order. */
export async function inBatches<T, R>(
  items: readonly T[],
  width: number,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const run = async (): Promise<void> => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i]!, i);
  };
  await Promise.all(Array.from({ length: width }, run));
  return results;
}
