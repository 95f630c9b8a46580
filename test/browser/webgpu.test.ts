// WebGPU in a real page, on the software adapter of Chromium: slow, but the same shaders.
import { chromium } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { browserPath } from '../dashboard/support/browser.ts';
import { watchPage } from '../dashboard/support/open-page.ts';
import { campaign } from '../support/campaign.ts';
import { importDist } from '../support/import-dist.ts';
import { waitForLibrary } from './support/library-page.ts';
import { canRun, startSite, TINY } from './support/site.ts';

const PROMPT = 'Once upon a time';
const GREEDY = { maxTokens: 16, temperature: 0 } as const;
const SOFTWARE_GPU = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];

/** A page of a browser with these further arguments. */
async function openWith(args: readonly string[], url: string) {
  const browser = await chromium.launch({
    executablePath: browserPath!,
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...args],
  });
  const watched = await watchPage(await browser.newContext(), `${url}blank.html`);
  await waitForLibrary(watched.page);
  return {
    page: watched.page,
    async [Symbol.asyncDispose]() {
      await watched[Symbol.asyncDispose]();
      await browser.close();
    },
  };
}

const isLong = campaign({ short: false, long: true });
if (!isLong)
  console.log('tokens of WebGPU in a page are compared in the long form only: the software adapter takes a minute');

describe.skipIf(!canRun)('WebGPU in a page', () => {
  test.skipIf(!isLong)('gives the tokens of the WASM kernels in Node', async () => {
    const { loadModel } = await importDist<typeof import('../../src/index.ts')>('index.js');
    const model = await loadModel(TINY, { kernels: 'wasm' });
    const { tokenIds: expected } = await model.generate(PROMPT, GREEDY);
    await model.dispose();

    await using site = await startSite({ files: { 'small.gguf': TINY } });
    await using opened = await openWith(SOFTWARE_GPU, site.url);
    const adapter = await opened.page.evaluate(async () => {
      const { gpu } = navigator as { gpu?: { requestAdapter(): Promise<object | null> } };
      return gpu !== undefined && (await gpu.requestAdapter()) !== null;
    });
    if (!adapter) return console.log('WebGPU in a page is not tested: this Chromium has no software adapter');
    const result = await opened.page.evaluate(
      async ({ prompt, greedy }) => {
        const loaded = await ruvllm.loadModel('/files/small.gguf', { kernels: 'webgpu' });
        const { tokenIds } = await loaded.generate(prompt, greedy);
        const { kernels } = loaded.modelInfo();
        await loaded.dispose();
        return { tokenIds, kernels };
      },
      { prompt: PROMPT, greedy: GREEDY },
    );
    expect(result).toEqual({ tokenIds: expected, kernels: expect.stringContaining('webgpu (google swiftshader)') });
  });

  test('is refused in words where there is none', async () => {
    await using site = await startSite({ files: { 'small.gguf': TINY } });
    await using opened = await openWith([], site.url);
    const message = await opened.page.evaluate(() =>
      ruvllm.loadModel('/files/small.gguf', { kernels: 'webgpu' }).then(
        () => '',
        (error: Error) => error.message,
      ),
    );
    expect(message).toMatch(/no WebGPU|no GPU adapter/);
  });
});
