import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildRandomModel, type RandomModelOptions } from '../../../test/support/random-model.ts';
import { runParts, testLimits } from '../../../test/support/run-model.ts';
import { createNativePackFactory } from '../../kernels/native/native-pack.ts';
import { loadModel } from '../../models/load-model.ts';
import type { LoadedModel } from '../../models/types.ts';
import { loadNativeBuilds } from '../../platform/node/kernels/native-addon.ts';
import { openModelFile } from '../../platform/node/files/open-model-file.ts';
import { createRepackCache, type RepackCacheOptions } from './repack-cache.ts';
import { dropOrphans, listImages } from './repack-folder.ts';

const [native] = loadNativeBuilds();
if (native === undefined) console.log('native kernels are not built here: tests of the repack cache are skipped');

let root: string;
let numFolders = 0;
beforeAll(() => (root = mkdtempSync(join(tmpdir(), 'ruvllm-repack-'))));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Weights of more than one mapped page, more than one MiB, and some bytes in a last page that is not mapped. */
const SHAPE = { numLayers: 4, embeddingDim: 256, numHeads: 4, numKvHeads: 2, headDim: 64, feedForwardDim: 512 };

const models = new Map<string, Uint8Array>();
function writeModel(options: Partial<RandomModelOptions> = {}): string {
  const path = join(root, `model-${numFolders++}.gguf`);
  const key = JSON.stringify(options);
  const bytes = models.get(key) ?? buildRandomModel({ architecture: 'qwen2', type: 'Q4_K', seed: 1, shape: SHAPE, ...options }); // prettier-ignore
  models.set(key, bytes);
  writeFileSync(path, bytes);
  return path;
}
const newFolder = (): string => join(root, `cache-${numFolders++}`);

interface Load {
  readonly model: LoadedModel;
  readonly isRestored: boolean;
}
async function load(path: string, options: Partial<RepackCacheOptions> & { folder: string }): Promise<Load> {
  const store = createRepackCache([path], { choice: 'on', numThreads: 2, ...options });
  const gguf = openModelFile(path);
  let isRestored = false;
  const model = await loadModel(gguf, createNativePackFactory(native!), {
    limits: testLimits,
    numThreads: 2,
    weightStore: { restore: (range) => (isRestored = store.restore(range)), save: (range) => store.save(range) },
  });
  gguf.source.close();
  return { model, isRestored };
}

async function logitsOf(model: LoadedModel): Promise<Float32Array[]> {
  return runParts(model, [{ tokenIds: [1, 2, 3, 4, 5], start: 0, pageIds: [0] }]);
}
async function loadAndRun(path: string, options: Partial<RepackCacheOptions> & { folder: string }) {
  const { model, isRestored } = await load(path, options);
  const logits = await logitsOf(model);
  await model.dispose();
  return { isRestored, logits };
}
const imageIn = (folder: string): string => listImages(folder)[0]!.path;

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  expect(at).toBeLessThan(bytes.length);
  bytes[at]! ^= 1;
  writeFileSync(path, bytes);
}

describe.skipIf(native === undefined)('packed weights kept on disk', () => {
  for (const type of ['Q4_0', 'Q4_K', 'F16'] as const) {
    test(`${type}: the second load maps them, and computes the same bits`, async () => {
      const [path, folder] = [writeModel({ type }), newFolder()];
      const first = await loadAndRun(path, { folder });
      const second = await loadAndRun(path, { folder });
      expect([first.isRestored, second.isRestored]).toEqual([false, true]);
      expect(second.logits).toEqual(first.logits);
      expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([]);
    });
  }

  const DAMAGES: Record<string, (image: string) => void> = {
    'a bit in the magic': (image) => flip(image, 0),
    'a bit in the description': (image) => flip(image, 100),
    'a bit in the first weight': (image) => flip(image, 65536),
    'a bit in the second MiB': (image) => flip(image, 65536 + (1 << 20) + 12345),
    'a bit in the last page': (image) => {
      const { sizeBytes } = JSON.parse(/\{.*\}/.exec(readFileSync(image, 'latin1'))![0]) as { sizeBytes: number };
      expect(sizeBytes % 65536).toBeGreaterThan(0);
      flip(image, 65536 + sizeBytes - 70);
    },
    'a byte cut off': (image) => truncateSync(image, readFileSync(image).length - 1),
    'half cut off': (image) => truncateSync(image, 400_000),
    'all cut off': (image) => truncateSync(image, 0),
    'a byte more': (image) => writeFileSync(image, Buffer.concat([readFileSync(image), Buffer.alloc(1)])),
  };
  for (const [name, damage] of Object.entries(DAMAGES)) {
    test(`an image with ${name} is not used, and made anew`, async () => {
      const [path, folder] = [writeModel(), newFolder()];
      const first = await loadAndRun(path, { folder });
      const whole = readFileSync(imageIn(folder));
      damage(imageIn(folder));
      const second = await loadAndRun(path, { folder });
      expect(second).toEqual({ isRestored: false, logits: first.logits });
      expect(readFileSync(imageIn(folder)).equals(whole)).toBe(true);
      expect((await loadAndRun(path, { folder })).isRestored).toBe(true);
    });
  }

  test("another model's image under this one's name is not used", async () => {
    const [path, other, folder, otherFolder] = [writeModel(), writeModel({ seed: 2 }), newFolder(), newFolder()];
    const first = await loadAndRun(path, { folder });
    await loadAndRun(other, { folder: otherFolder });
    copyFileSync(imageIn(otherFolder), imageIn(folder));
    expect(await loadAndRun(path, { folder })).toEqual({ isRestored: false, logits: first.logits });
  });

  test('a model file with other content, of the same size, gets its own', async () => {
    const [path, folder] = [writeModel(), newFolder()];
    const first = await loadAndRun(path, { folder });
    copyFileSync(writeModel({ seed: 2 }), path);
    const second = await loadAndRun(path, { folder });
    expect(second.isRestored).toBe(false);
    expect(second.logits).not.toEqual(first.logits);
    expect(listImages(folder)).toHaveLength(2);
  });

  test('the same content under another name or time is hashed again, and finds the same image', async () => {
    const [path, folder] = [writeModel(), newFolder()];
    await loadAndRun(path, { folder });
    utimesSync(path, 1, 1);
    await loadAndRun(path, { folder });
    expect(listImages(folder)).toHaveLength(1);
    expect((await loadAndRun(path, { folder })).isRestored).toBe(true);
  });

  test('a file replaced while it is loaded leaves nothing behind', async () => {
    const [path, folder] = [writeModel(), newFolder()];
    const store = createRepackCache([path], { choice: 'on', numThreads: 2, folder });
    const gguf = openModelFile(path);
    const model = await loadModel(gguf, createNativePackFactory(native!), {
      limits: testLimits,
      weightStore: {
        restore: (range) => store.restore(range),
        save(range) {
          copyFileSync(writeModel({ seed: 2 }), path);
          store.save(range);
        },
      },
    });
    gguf.source.close();
    await model.dispose();
    expect(listImages(folder)).toEqual([]);
  });

  test('loads side by side do not disturb each other, nor does an image that is replaced or removed', async () => {
    const [path, folder] = [writeModel(), newFolder()];
    const loads = await Promise.all([1, 2, 3].map(() => load(path, { folder })));
    const mapped = await load(path, { folder });
    expect(mapped.isRestored).toBe(true);
    const expected = await logitsOf(loads[0]!.model);
    const image = imageIn(folder);
    copyFileSync(image, `${image}.new`);
    rmSync(image);
    for (const { model } of [...loads, mapped]) expect(await logitsOf(model)).toEqual(expected);
    for (const { model } of [...loads, mapped]) await model.dispose();
  });

  test('a folder that cannot be made is no error', async () => {
    const path = writeModel();
    const { isRestored } = await loadAndRun(path, { folder: join(path, 'below-a-file') });
    expect(isRestored).toBe(false);
  });

  test('the bound holds: the longest unused goes first, and what is larger alone is not written', async () => {
    const folder = newFolder();
    const paths = [1, 2, 3].map((seed) => writeModel({ seed }));
    await loadAndRun(paths[0]!, { folder });
    const { sizeBytes } = listImages(folder)[0]!;
    const maxTotalBytes = 2 * sizeBytes + 100_000;
    await loadAndRun(paths[1]!, { folder, maxTotalBytes });
    listImages(folder).forEach(({ path }) => utimesSync(path, 1000, 1000));
    expect((await loadAndRun(paths[0]!, { folder, maxTotalBytes })).isRestored).toBe(true);
    await loadAndRun(paths[2]!, { folder, maxTotalBytes });
    expect(listImages(folder)).toHaveLength(2);
    const states = await Promise.all(paths.map((path) => loadAndRun(path, { folder, maxTotalBytes: sizeBytes / 2 })));
    expect(states.map(({ isRestored }) => isRestored)).toEqual([true, false, true]);
    expect(listImages(folder)).toHaveLength(2);
  });

  test('auto makes no image of what loads fast, and uses one that is there', async () => {
    const [path, folder] = [writeModel(), newFolder()];
    await loadAndRun(path, { folder, choice: 'auto' });
    expect(existsSync(folder)).toBe(false);
    await loadAndRun(path, { folder, choice: 'on' });
    expect((await loadAndRun(path, { folder, choice: 'auto' })).isRestored).toBe(true);
  });

  test('images of models that are gone are removed', async () => {
    const [path, other, folder] = [writeModel(), writeModel({ seed: 2 }), newFolder()];
    await loadAndRun(path, { folder });
    await loadAndRun(other, { folder });
    const { sizeBytes } = listImages(folder)[0]!;
    expect(dropOrphans(folder)).toBe(0);
    rmSync(other);
    expect(dropOrphans(folder)).toBe(sizeBytes);
    expect((await loadAndRun(path, { folder })).isRestored).toBe(true);
    expect(dropOrphans(join(root, 'nowhere'))).toBe(0);
  });
});
