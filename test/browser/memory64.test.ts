// Kernels with 64-bit addresses in a real page: memory beyond 4 GiB.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { createFileSink } from '../../src/platform/node/files/file-sink.ts';
import { campaign } from '../support/campaign.ts';
import { importDist } from '../support/import-dist.ts';
import { buildRandomModel } from '../support/random-model.ts';
import { bundlePageTests } from './support/bundle-page-tests.ts';
import { writeDeepModel } from './support/deep-model.ts';
import { openLibraryPage } from './support/library-page.ts';
import { canRun, startSite, STORIES } from './support/site.ts';

interface SuiteResult {
  readonly numTests: number;
  readonly failures: readonly string[];
  readonly names: readonly string[];
}

const PROMPT = `${'Lily and her friend Ben went to the park to play with the red ball. '.repeat(6)}Then`;
const GREEDY = { maxTokens: 48, temperature: 0, seed: 1 } as const;
/** Of KV pages: the activations after them lie beyond 4 GiB. Most pages are never touched and cost nothing. */
const LARGE_BUDGET = 5 * 2 ** 30;
const modules = fileURLToPath(new URL('../../dist/browser-modules', import.meta.url));
const WITHOUT_MEMORY64 = `
const { Memory } = WebAssembly;
WebAssembly.Memory = function (descriptor) {
  if (descriptor.address !== undefined) throw new TypeError('no Memory64');
  return new Memory(descriptor);
};
`;

const isLong = campaign({ short: false, long: true });
if (!isLong) console.log('a model of more than 4 GiB is loaded in the long form only: it takes 6 GiB of memory');

describe.skipIf(!canRun)('Memory64 in a page', () => {
  test('the kernels pass their contract suite on memory beyond 4 GiB', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ruvllm-page-'));
    try {
      await bundlePageTests('far-kernels', folder);
      await using site = await startSite({ folders: { '/suite/': folder } });
      await using watched = await openLibraryPage(site);
      // The same engine runs all of them in Node, too.
      const query = campaign({ short: '?each=4', long: '?plain' });
      const result = await watched.page.evaluate(
        (search) =>
          new Promise<SuiteResult>((resolve, reject) => {
            const worker = new Worker(`/suite/far-kernels.js${search}`, { type: 'module' });
            worker.addEventListener('message', ({ data }) => resolve(data as SuiteResult));
            worker.addEventListener('error', ({ message, filename, lineno }) =>
              reject(new Error(`${message} (${filename}:${lineno})`)),
            );
          }),
        query,
      );
      expect(result.failures).toEqual([]);
      expect(result.numTests).toBeGreaterThan(campaign({ short: 125, long: 1000 }));
      expect(result.names).toEqual([
        expect.stringMatching(/^wasm \(.*, 64-bit addresses\)$/),
        ...campaign({ short: [], long: ['wasm (simd128, 64-bit addresses)'] }),
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('a model with more than 4 GiB of pages gives the tokens of Node', async () => {
    const { loadModel } = await importDist<typeof import('../../src/index.ts')>('index.js');
    const model = await loadModel(STORIES, { kernels: 'wasm' });
    const { tokenIds: expected } = await model.generate(PROMPT, GREEDY);
    await model.dispose();

    await using site = await startSite({ files: { 'stories.gguf': STORIES } });
    await using watched = await openLibraryPage(site);
    const result = await watched.page.evaluate(
      async ({ prompt, greedy, memoryBudgetBytes }) => {
        const { hasMemory64 } = ruvllm.detectCapabilities();
        const narrow = await ruvllm.loadModel('/files/stories.gguf');
        const narrowKernels = narrow.modelInfo().kernels;
        await narrow.dispose();
        const wide = await ruvllm.loadModel('/files/stories.gguf', { memoryBudgetBytes });
        const { tokenIds } = await wide.generate(prompt, greedy);
        const again = await wide.generate(prompt, greedy);
        const { kernels, memory } = wide.modelInfo();
        await wide.dispose();
        const { cachedTokens, promptTokens } = again.usage;
        const { totalBytes } = memory;
        return {
          hasMemory64,
          narrowKernels,
          kernels,
          totalBytes,
          tokenIds,
          again: again.tokenIds,
          cachedTokens,
          promptTokens,
        };
      },
      { prompt: PROMPT, greedy: GREEDY, memoryBudgetBytes: LARGE_BUDGET },
    );
    expect(result).toMatchObject({
      hasMemory64: true,
      narrowKernels: expect.not.stringContaining('64-bit'),
      kernels: expect.stringMatching(/^wasm \(.*, 64-bit addresses\)$/),
      tokenIds: expected,
      again: expected,
    });
    expect(result.totalBytes).toBeGreaterThan(LARGE_BUDGET);
    expect(result.cachedTokens).toBe(result.promptTokens - 1);
  });

  test('a browser without Memory64 rejects the same model and names what it lacks', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ruvllm-page-'));
    try {
      // The script of the engine's worker, in a browser that ignores the option for 64-bit addresses or rejects it.
      writeFileSync(
        join(folder, 'worker.js'),
        WITHOUT_MEMORY64 + readFileSync(join(modules, 'engine-worker.js'), 'utf8'),
      );
      await using site = await startSite({
        files: { 'stories.gguf': STORIES },
        folders: { '/ruvllm/engine-': folder },
      });
      await using watched = await openLibraryPage(site);
      const result = await watched.page.evaluate(async (memoryBudgetBytes) => {
        const narrow = await ruvllm.loadModel('/files/stories.gguf');
        await narrow.dispose();
        return ruvllm.loadModel('/files/stories.gguf', { memoryBudgetBytes }).then(
          () => null,
          ({ code, message }: InstanceType<typeof ruvllm.RuvLLMError>) => ({ code, message }),
        );
      }, LARGE_BUDGET);
      expect(result).toEqual({
        code: 'out_of_memory',
        message: expect.stringMatching(/needs 5\d{9} bytes .* the limit is 4294901760: .*no WebAssembly Memory64/),
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test.skipIf(!isLong)('a model of more than 4 GiB gives the tokens of its layers that are not empty', async () => {
    const shape = {
      embeddingDim: 1024,
      feedForwardDim: 16_384,
      headDim: 64,
      numHeads: 16,
      numKvHeads: 4,
      numLayers: 2,
    };
    const small = buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 5, shape });
    const folder = mkdtempSync(join(tmpdir(), 'ruvllm-page-'));
    try {
      const [smallPath, deepPath] = [join(folder, 'small.gguf'), join(folder, 'deep.gguf')];
      writeFileSync(smallPath, small);
      const sink = createFileSink(deepPath);
      writeDeepModel(small, 130, sink);
      sink.commit();
      const { loadModel } = await importDist<typeof import('../../src/index.ts')>('index.js');
      const model = await loadModel(smallPath, { kernels: 'wasm', numThreads: 2 });
      const greedy = { maxTokens: 4, temperature: 0 } as const;
      const { tokenIds: expected } = await model.generate('Once', greedy);
      await model.dispose();

      await using site = await startSite({ files: { 'deep.gguf': deepPath } });
      await using watched = await openLibraryPage(site);
      const result = await watched.page.evaluate(async (options) => {
        const loaded = await ruvllm.loadModel('/files/deep.gguf', { maxContext: 256 });
        const { tokenIds } = await loaded.generate('Once', options);
        const { kernels, memory } = loaded.modelInfo();
        return { tokenIds, kernels, weightBytes: memory.weightBytes };
      }, greedy);
      expect(result).toMatchObject({ tokenIds: expected, kernels: expect.stringContaining('64-bit addresses') });
      expect(result.weightBytes).toBeGreaterThan(2 ** 32);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
