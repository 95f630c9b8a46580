// The built library in a real page: the same tokens as in Node, with and without threads.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { describeAdapterFile } from '../../src/adapters/index.ts';
import { createMemorySink, openGguf, writeGguf } from '../../src/gguf/index.ts';
import { readShape } from '../../src/models/shape.ts';
import { openFileSource } from '../../src/platform/node/files/file-source.ts';
import { paintPng } from '../support/make-png.ts';
import { buildRandomModel } from '../support/random-model.ts';
import { buildRandomVision, imageVocabulary } from '../support/random-vision.ts';
import { importDist } from '../support/import-dist.ts';
import { randomAdapter } from '../support/random-adapter.ts';
import { openLibraryPage, waitForLibrary } from './support/library-page.ts';
import { canRun, startSite, STORIES, TINY } from './support/site.ts';

const PROMPT = 'Once upon a time';
const LONG_PROMPT = `${'Lily and her friend Ben went to the park to play with the red ball. '.repeat(6)}Then`;
const GREEDY = { maxTokens: 48, temperature: 0, seed: 1 } as const;

interface Expected {
  readonly tokens: readonly number[];
  readonly longTokens: readonly number[];
  readonly json: string;
  readonly embedding: readonly number[];
}

async function generateInNode(path: string): Promise<Expected> {
  const { loadModel } = await importDist<typeof import('../../src/index.ts')>('index.js');
  const model = await loadModel(path, { kernels: 'wasm' });
  const { tokenIds: tokens } = await model.generate(PROMPT, GREEDY);
  const { tokenIds: longTokens } = await model.generate(LONG_PROMPT, GREEDY);
  const { text: json } = await model.generate(PROMPT, { ...GREEDY, grammar: { type: 'json_schema', schema: SCHEMA } });
  const embedded = await model.embed(PROMPT);
  await model.dispose();
  return { tokens, longTokens, json, embedding: Array.from(embedded.embeddings[0]!) };
}

describe.skipIf(!canRun)('the engine in a page', () => {
  /** What Node generates, by the path of the model. */
  const expectations = new Map<string, Expected>();

  beforeAll(async () => {
    for (const path of [STORIES, TINY]) expectations.set(path, await generateInNode(path));
  });

  test.each([
    { isIsolated: true, path: STORIES },
    { isIsolated: false, path: TINY },
  ])('generates the tokens of Node; isolated: $isIsolated', async ({ isIsolated, path }) => {
    const expected = expectations.get(path)!;
    await using site = await startSite({ isIsolated, files: { 'stories.gguf': path } });
    await using watched = await openLibraryPage(site);
    const result = await watched.page.evaluate(
      async ({ prompt, longPrompt, greedy, schema }) => {
        const { isIsolated, numThreads } = ruvllm.detectCapabilities();
        const model = await ruvllm.loadModel('/files/stories.gguf');
        const { tokenIds: tokens } = await model.generate(prompt, greedy);
        const { tokenIds: longTokens } = await model.generate(longPrompt, greedy);
        const again = await model.generate(longPrompt, greedy);
        const { text: json } = await model.generate(prompt, { ...greedy, grammar: { type: 'json_schema', schema } });
        const streamed: number[] = [];
        for await (const chunk of model.generateStream(prompt, greedy)) streamed.push(...chunk.tokenIds);
        const embedded = await model.embed(prompt);
        const info = model.modelInfo();
        await model.dispose();
        return {
          isIsolated,
          numThreads,
          usedThreads: info.numThreads,
          tokens,
          longTokens,
          againTokens: again.tokenIds,
          cachedTokens: again.usage.cachedTokens,
          promptTokens: again.usage.promptTokens,
          json,
          streamed,
          embedding: Array.from(embedded.embeddings[0]!),
        };
      },
      { prompt: PROMPT, longPrompt: LONG_PROMPT, greedy: GREEDY, schema: SCHEMA },
    );
    expect(result).toMatchObject({
      ...expected,
      isIsolated,
      streamed: expected.tokens,
      againTokens: expected.longTokens,
    });
    expect(result.usedThreads).toBe(isIsolated ? result.numThreads : 1);
    expect(result.numThreads > 1).toBe(isIsolated);
    expect(result.cachedTokens).toBe(result.promptTokens - 1);
  });

  test('an adapter and a tool call give the tokens of Node', async () => {
    const { loadModel } = await importDist<typeof import('../../src/index.ts')>('index.js');
    const source = openFileSource(TINY);
    const adapter = await randomAdapter(readShape(openGguf(source)), { seed: 3, strength: 0.4 });
    source.close();
    const sink = createMemorySink();
    writeGguf(describeAdapterFile(adapter), sink);
    const bytes = sink.toBytes();
    const model = await loadModel(TINY, { kernels: 'wasm', chatTemplate: 'chatml' });
    await model.loadAdapter(adapter, { name: 'other' });
    const adapted = await model.generate(PROMPT, { ...GREEDY, adapter: 'other' });
    const call = await model.generate([{ role: 'user', content: 'Hi' }], {
      ...GREEDY,
      tools: TOOLS,
      toolChoice: 'required',
    });
    await model.dispose();
    expect(adapted.tokenIds).not.toEqual(expectations.get(TINY)!.tokens);

    await using site = await startSite({ files: { 'stories.gguf': TINY, 'adapter.gguf': bytes } });
    await using watched = await openLibraryPage(site);
    const result = await watched.page.evaluate(
      async ({ prompt, greedy, tools }) => {
        const { name } = await ruvllm.storeModel('/files/adapter.gguf');
        const loaded = await ruvllm.loadModel('/files/stories.gguf', { chatTemplate: 'chatml' });
        await loaded.loadAdapter(name, { name: 'other' });
        const { tokenIds } = await loaded.generate(prompt, { ...greedy, adapter: 'other' });
        const { tokenIds: callIds } = await loaded.generate([{ role: 'user', content: 'Hi' }], {
          ...greedy,
          tools,
          toolChoice: 'required',
        });
        return { tokenIds, callIds };
      },
      { prompt: PROMPT, greedy: GREEDY, tools: TOOLS },
    );
    expect(result).toEqual({ tokenIds: adapted.tokenIds, callIds: call.tokenIds });
  });

  test('an image gives the tokens of Node, and an adapter folder of PEFT is refused in words', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'ruvllm-browser-vision-'));
    const files = {
      'model.gguf': buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape: { contextLength: 512 }, metadata: imageVocabulary() }),
      'mmproj.gguf': buildRandomVision({ outputDim: 96 }),
    }; // prettier-ignore
    for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
    const images = [paintPng(30, 20, (x) => [255, x * 8, 0]), paintPng(24, 24, (x, y) => [0, y * 10, 255 - x * 9])];
    const options = { maxTokens: 8, temperature: 0, topLogprobs: 1 } as const;
    const { loadModel } = await importDist<typeof import('../../src/index.ts')>('index.js');
    const model = await loadModel(join(folder, 'model.gguf'), { kernels: 'wasm', mmproj: join(folder, 'mmproj.gguf'), chatTemplate: 'chatml' }); // prettier-ignore
    const inNode: { tokenIds: readonly number[]; logprobs: (number | null)[] }[] = [];
    for (const data of images) {
      const { tokenIds, logprobs } = await model.generate([{ role: 'user', content: 'what is it', images: [{ offset: 0, data }] }], options); // prettier-ignore
      inNode.push({ tokenIds, logprobs: logprobs!.map(({ logprob }) => logprob) });
    }
    await model.dispose();
    rmSync(folder, { recursive: true });
    expect(inNode[0]).not.toEqual(inNode[1]);

    await using site = await startSite({ files });
    await using watched = await openLibraryPage(site);
    const inPage = await watched.page.evaluate(
      async ([base64s, given]) => {
        const loaded = await ruvllm.loadModel('/files/model.gguf', { mmproj: '/files/mmproj.gguf', chatTemplate: 'chatml' }); // prettier-ignore
        const answers = [];
        for (const base64 of base64s) {
          const data = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
          const { tokenIds, logprobs } = await loaded.generate([{ role: 'user', content: 'what is it', images: [{ offset: 0, data }] }], given); // prettier-ignore
          answers.push({ tokenIds, logprobs: logprobs!.map(({ logprob }) => logprob) });
        }
        const image = { offset: 0, data: new Uint8Array([1, 2, 3]) };
        const noImage = await loaded.generate([{ role: 'user', content: '', images: [image] }], given).catch(({ code }) => code as string); // prettier-ignore
        const peft = await loaded.loadAdapter('my-adapter', { name: 'mine' }).catch(({ code, message }) => ({ code, message })); // prettier-ignore
        return { answers, noImage, peft };
      },
      [images.map((image) => Buffer.from(image).toString('base64')), options] as const,
    );
    // The last digits of a logarithm depend on the version of V8.
    const rounded = (answers: typeof inNode) =>
      answers.map(({ tokenIds, logprobs }) => ({ tokenIds, logprobs: logprobs.map((one) => one!.toFixed(10)) }));
    expect(rounded(inPage.answers)).toEqual(rounded(inNode));
    expect(inPage.noImage).toBe('invalid_option');
    expect(inPage.peft).toMatchObject({ code: 'unsupported', message: expect.stringContaining('PEFT adapters cannot be read') }); // prettier-ignore
    expect(await watched.page.evaluate(() => globalThis.violations)).toEqual([]);
  });

  test('refuses threads without isolation, and options of Node', async () => {
    await using site = await startSite({ isIsolated: false, files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const errors = await watched.page.evaluate(async () => {
      const attempts = [
        { numThreads: 2 },
        { kernels: 'native' },
        { engineProcess: true },
        { hfToken: 'x' },
        { nonsense: 1 },
      ];
      const load = (config: object) => ruvllm.loadModel('/files/stories.gguf', config as object);
      const results = [];
      for (const config of attempts) results.push(await load(config).catch(({ code, message }) => ({ code, message })));
      const missing = await ruvllm.loadModel('absent.gguf').catch(({ code }) => code);
      return { results, missing };
    });
    expect(errors.missing).toBe('not_found');
    expect(errors.results).toMatchObject([
      { code: 'unsupported', message: expect.stringContaining('COOP and COEP') },
      { code: 'unsupported', message: expect.stringContaining('Node only') },
      { code: 'unsupported', message: expect.stringContaining('"engineProcess"') },
      { code: 'unsupported', message: expect.stringContaining('"hfToken"') },
      { code: 'invalid_option', message: expect.stringContaining('nonsense') },
    ]);
  });

  test('a worker that ends fails its requests with a retryable error, and the model can be loaded again', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    await page.evaluate(async () => {
      const model = await ruvllm.loadModel('/files/stories.gguf');
      globalThis.kept = { ...globalThis.kept, model };
    });
    const failure = page.evaluate(async () => {
      try {
        for (;;) await globalThis.kept.model.generate('Once', { maxTokens: 200, ignoreEos: true } as object);
      } catch (error) {
        const { code, isRetryable } = error as { code: string; isRetryable: boolean };
        return { code, isRetryable };
      }
    });
    const engine = page.workers().find((worker) => worker.url().endsWith('engine-worker.js'))!;
    void engine.evaluate(() => (globalThis as unknown as { close(): void }).close()).catch(() => {});
    expect(await failure).toEqual({ code: 'engine_crashed', isRetryable: true });
    const again = await page.evaluate(async (greedy) => {
      const isLoaded = globalThis.kept.model.isLoaded();
      const model = await ruvllm.loadModel('stories.gguf');
      const { tokenIds } = await model.generate('Once upon a time', greedy);
      return { isLoaded, tokenIds };
    }, GREEDY);
    expect(again).toEqual({ isLoaded: false, tokenIds: expectations.get(TINY)!.tokens });
  });

  test('runs without a network once it is loaded', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    await page.evaluate(async () => {
      globalThis.kept = { ...globalThis.kept, model: await ruvllm.loadModel('/files/stories.gguf') };
    });
    await page.context().setOffline(true);
    const tokens = await page.evaluate(
      async (greedy) => (await globalThis.kept.model.generate('Once upon a time', greedy)).tokenIds,
      GREEDY,
    );
    expect(tokens).toEqual(expectations.get(TINY)!.tokens);
  });

  test('after a reload the model and its prefix cache are there, and the tokens are the same', async () => {
    await using site = await startSite({ files: { 'stories.gguf': TINY } });
    await using watched = await openLibraryPage(site);
    const { page } = watched;
    const run = (source: string) =>
      page.evaluate(
        async ({ source: from, prompt, greedy }) => {
          const key = await ruvllm.openDeviceKey();
          const model = await ruvllm.loadModel(from, { kvSpill: { key } });
          const { tokenIds, usage } = await model.generate(prompt, greedy);
          await model.dispose();
          return { tokenIds, usage };
        },
        { source, prompt: LONG_PROMPT, greedy: GREEDY },
      );
    const first = await run('/files/stories.gguf');
    expect(first.usage.cachedTokens).toBe(0);
    await page.reload();
    await waitForLibrary(page);
    site.requests.length = 0;
    const second = await run('stories.gguf');
    expect(site.requests.filter((line) => line.includes('/files/'))).toEqual([]);
    expect([first.tokenIds, second.tokenIds]).toEqual([
      expectations.get(TINY)!.longTokens,
      expectations.get(TINY)!.longTokens,
    ]);
    // All whole pages of the prompt.
    expect(second.usage.cachedTokens).toBeGreaterThanOrEqual(Math.floor(second.usage.promptTokens / 16) * 16 - 16);
    expect(second.usage.cachedTokens).toBeGreaterThan(32);
  });
});

const SCHEMA = {
  type: 'object',
  properties: { name: { type: 'string', maxLength: 12 }, age: { type: 'integer', minimum: 0, maximum: 99 } },
  required: ['name', 'age'],
  additionalProperties: false,
};

const TOOLS = [
  {
    type: 'function' as const,
    function: {
      name: 'look',
      parameters: { type: 'object', properties: { at: { enum: ['sky', 'sea'] } }, required: ['at'] },
    },
  },
];
