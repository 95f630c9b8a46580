// The built package as users get it: dist/, real files, the engine in its worker thread.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientMessage } from '../src/engine/protocol.ts';
import type { GenerateChunk, Model } from '../src/index.ts';
import { importDist } from './support/import-dist.ts';
import { buildRandomModel } from './support/random-model.ts';
import { toyRequest } from './support/toy-spec.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist/lib/index.js');
const stories = join(root, '../shared/models/stories260K-f32.gguf');
const folder = mkdtempSync(join(tmpdir(), 'ruvllm-library-'));
const randomModel = join(folder, 'random.gguf');

const isBuilt = existsSync(dist);
if (!isBuilt) console.log('library tests skipped: dist/ is not built, run "npm run build"');
const hasStories = existsSync(stories);
if (!hasStories) console.log(`story tests skipped: ${stories} does not exist`);

const library = isBuilt ? ((await import(pathToFileURL(dist).href)) as typeof import('../src/index.ts')) : null!;

beforeAll(() => {
  const shape = { contextLength: 128 };
  writeFileSync(randomModel, buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 7, shape }));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function readAll(stream: AsyncIterable<GenerateChunk>): Promise<GenerateChunk[]> {
  const chunks: GenerateChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

async function expectAllFree(model: Model): Promise<void> {
  const stats = await model.stats();
  expect(stats).toMatchObject({ numRunning: 0, numWaiting: 0, numFreePages: stats.numPages });
}

const MODELS = [
  { name: 'random weights, wasm', path: randomModel, kernels: 'wasm', exists: true },
  { name: 'random weights, reference', path: randomModel, kernels: 'reference', exists: true },
  { name: 'stories260K, auto', path: stories, kernels: 'auto', exists: hasStories },
] as const;

for (const { name, path, kernels, exists } of MODELS) {
  describe.skipIf(!isBuilt || !exists)(name, () => {
    let model: Model;
    beforeAll(async () => {
      // Nine pages: hardly more than one sequence, and none to pack others into.
      const memory = { maxContext: 128, kvCacheTokens: 144 };
      model = await library.loadModel(path, { kernels, numThreads: 2, ...memory });
    });
    afterAll(async () => {
      await model.dispose();
      expect(model.isLoaded()).toBe(false);
      await expect(model.generate('a')).rejects.toMatchObject({ code: 'not_loaded' });
    });

    test('reports the loaded model', () => {
      const info = model.modelInfo();
      expect(info).toMatchObject({ path, architecture: 'llama', size: 'tiny', maxContext: 128 });
      expect(info.memory.totalBytes).toBeGreaterThan(info.memory.kvBytes);
      expect(info.vocabSize).toBe(model.tokenizer.vocabSize);
    });

    test('the concatenated stream equals the result, and the same seed repeats it', async () => {
      const options = { maxTokens: 40, seed: 12, temperature: 0.9 };
      const result = await model.generate('Once upon a time', options);
      const chunks = await readAll(model.generateStream('Once upon a time', options));
      expect(chunks.map((chunk) => chunk.text).join('')).toBe(result.text);
      expect(chunks.flatMap((chunk) => chunk.tokenIds)).toEqual(result.tokenIds);
      expect(result.usage.completionTokens).toBe(result.tokenIds.length);
      const others = await model.generate('Once upon a time', { ...options, seed: 13 });
      expect(others.tokenIds).not.toEqual(result.tokenIds);
    });

    test('concurrent requests get the same answers as alone, even when pages run out', async () => {
      const asks = ['Once upon a time', 'The dog', 'A big red ball and a little cat', 'Lily'].map((prompt, index) => ({
        prompt,
        options: { maxTokens: 70, seed: 100 + index, ignoreEos: true },
      }));
      const alone = [];
      for (const { prompt, options } of asks) alone.push((await model.generate(prompt, options)).tokenIds);
      const together = await Promise.all(asks.map(({ prompt, options }) => model.generate(prompt, options)));
      expect(together.map((result) => result.tokenIds)).toEqual(alone);
      expect((await model.stats()).numPreemptions).toBeGreaterThan(0);
      await expectAllFree(model);
    });

    test('leaving a stream, or aborting it, frees all pages', async () => {
      for await (const chunk of model.generateStream('Once', { maxTokens: 100, ignoreEos: true })) {
        if (chunk.tokenIds.length > 0) break;
      }
      await expectAllFree(model);
      const controller = new AbortController();
      const stream = model.generateStream('Once', { maxTokens: 100, ignoreEos: true, signal: controller.signal });
      await stream.next();
      controller.abort();
      await expect(readAll(stream)).rejects.toMatchObject({ code: 'aborted' });
      await expectAllFree(model);
    });

    test('takes a computed prompt from the cache and gives the same text', async () => {
      const prompt = 'There was a small house by the river';
      const options = { maxTokens: 12, seed: 3, ignoreEos: true };
      const { promptTokens, ...none } = (await model.generate(prompt, { ...options, cachePrefix: false })).usage;
      expect(none.cachedTokens).toBe(0);
      const first = await model.generate(prompt, options);
      // Earlier tests left cached prefixes: BOS at least may hit.
      expect(first.usage.cachedTokens).toBeLessThan(4);
      const again = await model.generate(prompt, options);
      // The second time the answer is known and drafted.
      const { acceptedDraftTokens: _accepted, rejectedDraftTokens: _rejected, ...usage } = first.usage;
      expect(again.usage).toMatchObject({ ...usage, cachedTokens: promptTokens - 1 });
      expect(again.text).toBe(first.text);
      expect(again.tokenIds).toEqual(first.tokenIds);
      expect((await model.generate(prompt, { ...options, cachePrefix: false })).usage.cachedTokens).toBe(0);
      expect((await model.generate(prompt, { ...options, tenant: 'other' })).usage.cachedTokens).toBe(0);
      expect((await model.generate(prompt, { ...options, tenant: 'other' })).usage.cachedTokens).toBe(promptTokens - 1);
    });

    test('a session equals the whole history and reuses its pages', async () => {
      const session = model.session('fox');
      const options = { maxTokens: 10, seed: 4, ignoreEos: true };
      await session.generate('A fox came to the', options);
      const history = session.tokenIds;
      const turn = await session.generate(' and then it', options);
      const prompt = session.tokenIds.slice(0, -10);
      expect(prompt.slice(0, history.length)).toEqual(history);
      expect(turn.usage.cachedTokens).toBe(history.length - 1);
      expect(prompt.filter((id) => id === model.tokenizer.bosId)).toHaveLength(model.tokenizer.addsBos ? 1 : 0);
      const whole = await model.generate(prompt, { ...options, cachePrefix: false });
      expect(turn.tokenIds).toEqual(whole.tokenIds);
      expect(model.tokenizer.decode(session.tokenIds)).toContain(' and then it');
      expect(model.sessions()).toMatchObject([{ id: 'fox', numTurns: 2, numTokens: session.tokenIds.length }]);
      expect(model.deleteSession('fox')).toBe(true);
    });

    test('an unread stream holds no pages after the engine is done', async () => {
      const stream = model.generateStream('Once', { maxTokens: 60, ignoreEos: true });
      await stream.next();
      while ((await model.stats()).numRunning > 0);
      await expectAllFree(model);
      expect((await readAll(stream)).flatMap((chunk) => chunk.tokenIds)).toHaveLength(59);
    });

    test('errors cross the worker boundary with their data', async () => {
      await expect(model.generate([0, 10_000_000])).rejects.toMatchObject({
        code: 'invalid_token',
        data: { tokenId: 10_000_000, position: 1 },
      });
      await expect(model.generate('a', { maxTokens: 128 })).rejects.toMatchObject({ code: 'context_overflow' });
    });

    test('log-probabilities belong to the tokens', async () => {
      const result = await model.generate('Once', { maxTokens: 5, temperature: 0, topLogprobs: 2, ignoreEos: true });
      expect(result.logprobs!.map((token) => token.tokenId)).toEqual(result.tokenIds);
      for (const { tokenId, logprob, top } of result.logprobs!) {
        expect(top[0]).toEqual({ tokenId, logprob }); // Greedy: the chosen one is the most likely.
        expect(top).toHaveLength(2);
      }
    });
  });
}

test.skipIf(!isBuilt)('a session recalls from the memory and writes one audit entry per turn', async () => {
  const masterKey = { key: new Uint8Array(32).fill(1) };
  const memory = await library.openMemory({ place: join(folder, 'memory'), masterKey, modelPath: randomModel });
  const model = await library.loadModel(randomModel, { kernels: 'reference', numThreads: 1, memory });
  try {
    const sourceId = await memory.add('local', { text: 'a fox ran' });
    const session = model.session('fox');
    const requestId = crypto.randomUUID();
    const options = { maxTokens: 3, ignoreEos: true };
    await session.generate('a fox', { ...options, requestId, user: 'eve', memory: { minSimilarity: -1 } });
    await session.generate(' and', options);
    expect(model.tokenizer.decode(session.tokenIds)).toContain('a fox ran');
    await model.dispose(); // waits until both turns are written
    await memory.audit.flush();
    const entries = (await memory.audit.search('local', {})).entries.map(({ entry }) => entry).toReversed();
    expect(entries).toMatchObject([
      { requestId, sessionId: 'fox', query: 'a fox', contextDocIds: [sourceId], error: null },
      { sessionId: 'fox', query: ' and', contextDocIds: [], error: null },
    ]);
    expect((await memory.sessions.find('local', { userId: 'eve' })).sessions).toMatchObject([{ turnCount: 2 }]);
  } finally {
    await model.dispose();
    await memory.close();
  }
});

test.skipIf(!isBuilt)('reports why a model cannot be loaded and leaves no thread', async () => {
  await expect(library.loadModel(join(folder, 'missing.gguf'))).rejects.toMatchObject({ code: 'not_found' });
  await expect(library.loadModel(randomModel, { memoryLimitBytes: 1000 })).rejects.toMatchObject({
    code: 'out_of_memory',
    data: { limitBytes: 1000 },
  });
  await expect(library.loadModel(randomModel, { device: 'cuda' })).rejects.toMatchObject({ code: 'unsupported' });
  await expect(library.loadModel(randomModel, { signal: AbortSignal.abort() })).rejects.toMatchObject({
    code: 'aborted',
  });
  const broken = join(folder, 'broken.gguf');
  writeFileSync(broken, 'no model file at all');
  await expect(library.loadModel(broken)).rejects.toMatchObject({ code: 'invalid_model_file' });
});

test.skipIf(!isBuilt)('shrinks a default context to the budget and rejects an explicit one', async () => {
  const options = { kernels: 'reference', numThreads: 1, kvPacking: 'off' } as const;
  const whole = await library.loadModel(randomModel, { ...options, kvCacheTokens: 128 });
  const { kvBytes } = whole.modelInfo().memory;
  await whole.dispose();
  const memoryBudgetBytes = Math.ceil(kvBytes / 2);
  const half = await library.loadModel(randomModel, { ...options, memoryBudgetBytes });
  expect(half.modelInfo().maxContext).toBe(64);
  expect((await half.stats()).cache.budgetBytes).toBeLessThanOrEqual(memoryBudgetBytes);
  await expect(half.generate('a', { maxTokens: 64 })).rejects.toMatchObject({ code: 'context_overflow' });
  await half.dispose();
  await expect(
    library.loadModel(randomModel, { ...options, memoryBudgetBytes, maxContext: 128 }),
  ).rejects.toMatchObject({ code: 'out_of_memory', data: { budgetBytes: memoryBudgetBytes } });
});

test.skipIf(!isBuilt)('restores sessions and their pages after kill -9, with the right key', async () => {
  const spillFolder = join(folder, 'kept');
  const program = `
    import { loadModel } from ${JSON.stringify(pathToFileURL(dist).href)};
    const kvSpill = { folder: ${JSON.stringify(spillFolder)}, masterKey: new Uint8Array(32).fill(1) };
    const model = await loadModel(process.argv[1], { kernels: 'reference', numThreads: 1, kvSpill });
    const session = model.session('s', { tenant: 't' });
    await session.generate('hello hello hello hello hello', { maxTokens: 20, ignoreEos: true, temperature: 0 });
    while ((await model.stats()).cache.spill.numPages < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    console.log(JSON.stringify(session.tokenIds));
    process.kill(process.pid, 'SIGKILL');`;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', program, randomModel], {
    encoding: 'utf8',
    env: { ...process.env, RUVLLM_CACHE_DIR: join(folder, 'cache') },
  });
  expect(run.stderr).toBe('');
  expect(run.signal).toBe('SIGKILL');
  const tokenIds = JSON.parse(run.stdout) as number[];
  const load = (fill: number) =>
    library.loadModel(randomModel, {
      kernels: 'reference',
      numThreads: 1,
      kvSpill: { folder: spillFolder, masterKey: new Uint8Array(32).fill(fill) },
    });
  const options = { maxTokens: 8, ignoreEos: true, temperature: 0 };
  const model = await load(1);
  const session = model.session('s', { tenant: 't' });
  expect(session.tokenIds).toEqual(tokenIds);
  expect(model.session('s').numTurns).toBe(0);
  expect(model.sessions({ tenant: 't' })).toMatchObject([{ id: 's', numTurns: 1, numTokens: tokenIds.length }]);
  const turn = await session.generate(' world', options);
  expect(turn.usage.cachedTokens).toBeGreaterThanOrEqual(32); // Whole pages were restored from the folder.
  const prompt = session.tokenIds.slice(0, -8);
  const alone = await model.generate(prompt, { ...options, cachePrefix: false });
  expect(turn.tokenIds).toEqual(alone.tokenIds);
  await model.dispose();

  const warnings: (string | undefined)[] = [];
  const onWarning = (warning: Error & { code?: string }): void => void warnings.push(warning.code);
  process.on('warning', onWarning);
  const stranger = await load(2);
  expect(stranger.session('s', { tenant: 't' }).numTurns).toBe(0);
  expect((await stranger.generate(prompt, { ...options, tenant: 't' })).usage.cachedTokens).toBe(0);
  await stranger.dispose();
  process.off('warning', onWarning);
  expect(warnings).toContain('RUVLLM_KV_SPILL');
  const later = await load(1);
  expect(later.session('s', { tenant: 't' }).numTurns).toBe(2);
  await later.dispose();
});

test.skipIf(!isBuilt)('a crashed worker fails the load and all running requests', async () => {
  const { spawnEngine } = await importDist<typeof import('../src/node/engine/spawn-engine.ts')>('node/engine/spawn-engine.js'); // prettier-ignore
  const { createEngineClient } = await importDist<typeof import('../src/runtime/engine-client.ts')>('runtime/engine-client.js'); // prettier-ignore
  const transport = spawnEngine();
  const client = createEngineClient(transport);
  const events: unknown[] = [];
  client.generate({ ...toyRequest({ promptIds: [1], maxTokens: 1, seed: 0 }) }, (event) => events.push(event));
  const stats = client.stats(); // Without a model it is never answered.
  transport.post({ type: 'no such message' } as unknown as ClientMessage);
  await expect(stats).rejects.toMatchObject({ code: 'kernel_failed', data: { exitCode: 1 } });
  expect(events).toMatchObject([{ type: 'failed', error: { code: 'not_loaded' } }]);
  expect(client.isAlive).toBe(false);
  await client.dispose();
});

test.skipIf(!isBuilt)('a program without dispose still exits', () => {
  const program = `
    import { loadModel } from ${JSON.stringify(pathToFileURL(dist).href)};
    const model = await loadModel(process.argv[1], { numThreads: 2 });
    const { usage } = await model.generate('hello', { maxTokens: 3, ignoreEos: true });
    console.log(usage.completionTokens);`;
  const run = spawnSync(process.execPath, ['--input-type=module', '-e', program, randomModel], { encoding: 'utf8' });
  expect(run.stderr).toBe('');
  expect(run.stdout).toBe('3\n');
  expect(run.status).toBe(0);
});
