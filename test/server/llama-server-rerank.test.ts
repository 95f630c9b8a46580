// `ruvllm serve` with a cross-encoder, called as llama-server's clients do.
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { buildRandomBert } from '../support/random-bert.ts';
import { createServeFolder, type ServeFolder, type ServeProcess } from '../support/serve-process.ts';

describe.skipIf(!isServerBuilt)('a served cross-encoder', () => {
  let folder: ServeFolder;
  let server: ServeProcess;
  beforeAll(async () => {
    folder = createServeFolder({ contextLength: 128 });
    const path = join(dirname(folder.model), 'reranker.gguf');
    writeFileSync(path, buildRandomBert({ head: 'dense' }));
    server = await folder.start(path, folder.model);
  });
  afterAll(() => {
    folder.killAll();
    folder.dispose();
  });

  const post = async (path: string, body: object) => {
    const response = await fetch(`${server.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: 'abc de', ...body }),
    });
    return { status: response.status, body: (await response.json()) as object };
  };
  const documents = ['f ab', 'abc', 'ponm lkj', 'a b c d e f g h', 'abc de'];

  test('orders documents as llama.cpp does', async () => {
    const { status, body } = await post('/v1/rerank', { model: 'reranker', documents, top_n: 3 });
    expect(status).toBe(200);
    // The logits of test/rerank.test.ts; keys and values are rounded to f16 here.
    expect(body).toMatchObject({
      model: 'reranker',
      results: [
        { index: 0, relevance_score: expect.closeTo(0.574, 2) },
        { index: 2, relevance_score: expect.closeTo(0.492, 2) },
        { index: 1, relevance_score: expect.closeTo(0.33, 2) },
      ],
      usage: { prompt_tokens: 66, total_tokens: 66 },
    });
  });

  test('a chat model answers by embeddings only if asked', async () => {
    const request = { model: 'tiny', documents };
    expect(await post('/rerank', request)).toMatchObject({ status: 400, body: { error: { code: 'unsupported' } } });
    const { status, body } = await post('/rerank', { ...request, method: 'embeddings', top_n: 1 });
    expect(status).toBe(200);
    expect(body).toMatchObject({ results: [{ index: 4, relevance_score: expect.closeTo(1, 5) }] });
  });

  test('a cross-encoder does not generate', async () => {
    const { status } = await post('/v1/completions', { model: 'reranker', prompt: 'abc', max_tokens: 1 });
    expect(status).toBe(400);
  });
});
