// A real sentence encoder from an npm package: converted, loaded and used.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Memory } from '../src/memory/memory.ts';
import type { OpenMemoryOptions } from '../src/node/memory/open-memory.ts';
import { convertMiniLm, fetchMiniLm } from './support/minilm.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/index.js'));
const reason = isBuilt ? fetchMiniLm(root) : 'dist/ is not built, run "npm run build"';
if (reason !== null) console.log(`MiniLM tests skipped: ${reason}`);

describe.skipIf(reason !== null)('all-MiniLM-L6-v2', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-minilm-'));
  const path = join(folder, 'minilm-f16.gguf');
  let library: typeof import('../src/index.ts');
  beforeAll(async () => {
    library = (await import(pathToFileURL(join(root, 'dist/index.js')).href)) as typeof library;
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
    const search = async (memory: Memory) => (await memory.search('alice', query)).results.map(({ text }) => text);

    test('[EM7] finds texts without common words, also after a restart; spaces are separate', async () => {
      const first = await open();
      for (const text of texts) await first.add('alice', { text });
      expect(await search(first)).toEqual([texts[2]]);
      const { space } = await first.stats(null);
      expect(space).toMatch(/^model-1-/);
      await opened.pop()!.close();
      const other = await open({ embedder: 'static' });
      expect((await other.stats(null)).space).toMatch(/^static-2-/);
      expect(await search(other)).toEqual([]);
      await expect(other.search('alice', { ...query, space: space! })).rejects.toMatchObject({
        code: 'invalid_option',
      });
      await opened.pop()!.close();
      expect(await search(await open())).toEqual([texts[2]]);
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
});
