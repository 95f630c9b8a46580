// Reranking as users get it: dist/ and a real file of a cross-encoder.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { buildRandomBert, type RandomBertOptions } from './support/random-bert.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const isBuilt = existsSync(join(root, 'dist/lib/index.js'));
if (!isBuilt) console.log('reranking tests skipped: dist/ is not built, run "npm run build"');
const library = isBuilt
  ? ((await import(pathToFileURL(join(root, 'dist/lib/index.js')).href)) as typeof import('../src/index.ts'))
  : null!;

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-rerank-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function writeModel(name: string, options: RandomBertOptions): string {
  const path = join(folder, `${name}.gguf`);
  writeFileSync(path, buildRandomBert(options));
  return path;
}

const query = 'abc de';
const documents = ['f ab', 'abc', 'ponm lkj', 'a b c d e f g h', 'abc de'];
/** For the tokens [CLS] query [SEP] document [SEP] of the same files. */
const EXPECTED = {
  dense: {
    logits: [0.5738, 0.33015, 0.49197, -0.08199, 0.3071],
    llamaCpp: [0.63957, 0.58178, 0.62053, 0.47945, 0.57622],
  },
  direct: {
    logits: [-0.13943, -0.22531, -0.03662, -1.51489, -0.04273],
    llamaCpp: [0.46539, 0.44411, 0.49077, 0.18028, 0.48964],
  },
};

describe.skipIf(!isBuilt)('rerank in the library', () => {
  const cases = (['dense', 'direct'] as const).flatMap((head) =>
    (['auto', 'wasm', 'reference'] as const).map((kernels) => ({ head, kernels })),
  );
  test.each(cases)('scores as in the paper and as llama.cpp: $head head on $kernels', async ({ head, kernels }) => {
    const config = { kernels, numThreads: 2, kvPrecision: 'f32' } as const;
    await using model = await library.loadModel(writeModel(head, { head }), config);
    expect(model.modelInfo()).toMatchObject({ canGenerate: false, canRerank: true });
    const { results, usage } = await model.rerank(query, documents);
    const { logits, llamaCpp } = EXPECTED[head];
    for (const { index, score } of results) {
      // Computed in double precision from the file, without our code.
      expect(Math.abs(score - logits[index]!), documents[index]).toBeLessThan(5e-5);
      // node-llama-cpp 3.22.1 reports probabilities; its GELU is rounded to f16.
      expect(Math.abs(1 / (1 + Math.exp(-score)) - llamaCpp[index]!), documents[index]).toBeLessThan(5e-4);
    }
    const order = [...llamaCpp.keys()].sort((a, b) => llamaCpp[b]! - llamaCpp[a]!);
    expect(results.map(({ index }) => index)).toEqual(order);
    // Seven tokens of the query with its special ones; each document has one more at its end.
    expect(usage).toEqual({ promptTokens: 5 * 7 + 4 + 4 + 8 + 9 + 6, totalTokens: 66 });
    expect((await model.rerank(query, documents, { topN: 2 })).results).toEqual(results.slice(0, 2));
  });

  test('rejects a pair longer than the context, and truncates the document if asked', async () => {
    await using model = await library.loadModel(writeModel('long', { head: 'dense' }), { kernels: 'reference' });
    const long = 'a '.repeat(80).trim();
    await expect(model.rerank(query, ['f', long])).rejects.toMatchObject({
      code: 'context_overflow',
      message: expect.stringContaining('the query with documents[1] has 88 tokens; the context holds 64'),
      data: { index: 1, promptTokens: 88, maxContext: 64 },
    });
    const { results, usage } = await model.rerank(query, [long], { truncate: true });
    expect(usage.promptTokens).toBe(64);
    // The end token stays: the same as a document of exactly that length.
    expect(results).toEqual((await model.rerank(query, ['a '.repeat(56).trim()])).results);
    await expect(model.rerank(long, ['f'], { truncate: true })).rejects.toMatchObject({ code: 'context_overflow' });
  });

  test('a file without a usable head reranks by embeddings only', async () => {
    for (const [name, options] of [
      ['none', {}],
      ['headless', { head: 'dense', omit: (tensor: string) => tensor.startsWith('cls.output') }],
    ] as const) {
      await using model = await library.loadModel(writeModel(name, options), { kernels: 'reference' });
      expect(model.modelInfo().canRerank).toBe(false);
      await expect(model.rerank(query, documents)).rejects.toMatchObject({
        code: 'unsupported',
        message: expect.stringContaining('"embeddings"'),
      });
      const { results } = await model.rerank(query, documents, { method: 'embeddings' });
      expect(results[0]).toMatchObject({ index: 4, score: expect.closeTo(1, 5) });
    }
  });
});
