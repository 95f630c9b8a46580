import { describe, expect, test } from 'vitest';
import { createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';

const encoder = { isCausal: false, limits: { maxBatchTokens: 512 } };

/** Scores grow with the first value of the first token's hidden state. */
async function setUp(hasHead = true) {
  const { model } = await createToyRuntime({ ...encoder, ...(hasHead ? { head: ([first]) => first! } : {}) });
  const { fetch, services } = createTestServer([entryOf('toy', async () => model)]);
  const post = async (body: object, path = '/v1/rerank') => {
    const request = new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'toy', query: 'hi', ...body }),
    });
    const response = await fetch(request);
    return { status: response.status, body: (await response.json()) as never };
  };
  return { post, model, services };
}

const documents = ['a', 'hi there', 'no'];

describe('reranking over HTTP', () => {
  test.each(['/v1/rerank', '/v1/reranking', '/rerank', '/reranking'])("%s has llama-server's format", async (path) => {
    const { post, model } = await setUp();
    const { results, usage } = await model.rerank('hi', documents);
    expect(await post({ documents }, path)).toEqual({
      status: 200,
      body: {
        object: 'list',
        model: 'toy',
        results: results.map(({ index, score }) => ({ index, relevance_score: score })),
        usage: { prompt_tokens: usage.promptTokens, total_tokens: usage.totalTokens },
      },
    });
    const scores = results.map(({ score }) => score);
    expect(new Set(scores).size).toBe(3);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
  });

  test('top_n limits the results, and documents are returned on request', async () => {
    const { post } = await setUp();
    const all = (await post({ documents })).body['results'] as { index: number }[];
    const objects = documents.map((text) => ({ text }));
    expect(await post({ documents: objects, top_n: 1, return_documents: true })).toMatchObject({
      body: { results: [{ ...all[0], document: { text: documents[all[0]!.index] } }] },
    });
    expect((await post({ documents, top_n: 9 })).body['results']).toHaveLength(3);
  });

  test('texts get the list of Text Embeddings Inference', async () => {
    const { post } = await setUp();
    const { body } = await post({ texts: documents, return_text: true });
    expect(body).toHaveLength(3);
    expect(body).toEqual(
      expect.arrayContaining(documents.map((text, index) => ({ index, text, score: expect.any(Number) }))),
    );
  });

  test('a model without a head answers by embeddings only if asked', async () => {
    const { post } = await setUp(false);
    expect(await post({ documents })).toMatchObject({
      status: 400,
      body: { error: { code: 'unsupported', message: expect.stringMatching(/not a cross-encoder.*"embeddings"/) } },
    });
    const { status, body } = await post({ documents: ['no', 'hi'], method: 'embeddings' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ results: [{ index: 1, relevance_score: expect.closeTo(1, 6) }, { index: 0 }] });
  });

  test.each<[string, object, number, object]>([
    ['no documents', {}, 400, { param: 'documents' }],
    ['an empty list', { documents: [] }, 400, { param: 'documents' }],
    ['a number', { documents: ['a', 5] }, 400, { param: 'documents[1]' }],
    ['an empty query', { documents, query: '' }, 400, { param: 'query' }],
    ['top_n 0', { documents, top_n: 0 }, 400, { param: 'top_n' }],
    ['an unknown method', { documents, method: 'magic' }, 400, { param: 'method' }],
    ['1025 documents', { documents: Array(1025).fill('a') }, 422, { code: 'limit_exceeded', param: 'documents' }],
    ['two megabytes', { texts: ['a'.repeat(2 ** 20)] }, 422, { code: 'limit_exceeded', param: 'texts' }],
    [
      'a long query for each',
      { documents: Array(1000).fill('a'), query: 'a'.repeat(2000) },
      422,
      { param: 'documents' },
    ],
    ['a long document', { documents: ['a', 'b'.repeat(600)] }, 400, { code: 'context_length_exceeded', message: 'the query with documents[1] has 603 tokens; the context holds 512; shorten the document or ask for truncation' }], // prettier-ignore
  ])('rejects %s', async (_what, body, status, error) => {
    const { post, services } = await setUp();
    expect(await post(body)).toMatchObject({ status, body: { error } });
    expect(services.admission.numRequests).toBe(0);
  });

  test('never truncates the query', async () => {
    for (const [hasHead, method] of [
      [true, 'cross-encoder'],
      [false, 'embeddings'],
    ] as const) {
      const { post } = await setUp(hasHead);
      expect(await post({ query: 'a'.repeat(600), documents: ['b'], truncate: true, method })).toMatchObject({
        status: 400,
        body: { error: { code: 'context_length_exceeded', message: expect.stringContaining('shorten the query') } },
      });
    }
  });

  test('truncates a long document if asked', async () => {
    const { post } = await setUp();
    const { status, body } = await post({ documents: ['b'.repeat(600)], truncate: true });
    expect(status).toBe(200);
    expect(body).toMatchObject({ usage: { prompt_tokens: 512 } });
  });
});
