import { expect, test, vi } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import type { Embedder } from '../embedder-types.ts';
import { createMemoryGraph } from '../graph/graph.ts';
import type { RemoteFinder } from '../remote/protocol.ts';
import { nodeToRecord } from '../schemas/node.ts';
import { createTestServices, createTestStore } from '../test-store.contract.ts';
import { createFinder, type FinderContext } from './finder.ts';

const T = 'acme';
const reply = { embedded: null, near: null, found: null, embeddingMs: 1, nearMs: 2, searchMs: 3 };

async function setUp(changes: Partial<FinderContext> = {}) {
  const services = createTestServices();
  const store = createTestStore(services);
  const embedder: Embedder = {
    fingerprint: 'letters-2',
    dim: 2,
    embed: vi.fn((text: string) => {
      if (text === ' ') throw new RuvLLMError('invalid_text', 'nothing');
      return Float32Array.of(text.split('a').length, text.split('b').length);
    }),
  };
  const graph = createMemoryGraph(store, services);
  const beside = { ask: vi.fn<RemoteFinder['ask']>(async () => reply), search: vi.fn<RemoteFinder['search']>(async () => ({ results: [], candidates: [], numDuplicates: 0, context: null })) }; // prettier-ignore
  let nowMs = 0;
  const monotonic = (): number => ++nowMs;
  const finder = createFinder({
    store,
    services,
    graph,
    embedder,
    finder: beside,
    monotonic,
    rerank: () => null,
    ...changes,
  });
  const put = (kind: 'fact' | 'pattern', text: string, embedding: Float32Array, tenant = T) =>
    store.put([nodeToRecord({ id: services.newId(), kind, text, source: null, topic: null, quality: null, metadata: {}, expiresMs: null, embedding, space: 'letters-2' }, tenant)]); // prettier-ignore
  return { finder, beside, embedder, store, put, services };
}

test('[EM8] requests that recall nothing do not wait for the encoder; recall and searches use it', async () => {
  const requestEmbedder: Embedder = { fingerprint: 'quick', dim: 2, embed: vi.fn(() => Float32Array.of(1, 0)) };
  const { finder, beside, embedder } = await setUp({ requestEmbedder });
  const near = { kinds: ['pattern'], k: 3 } as const;
  expect((await finder.ask(T, { text: 'ab', near })).embedded!.space).toBe('quick');
  expect(embedder.embed).not.toHaveBeenCalled();
  expect((await finder.ask(T, { text: 'ab', near, search: { k: 2 } })).embedded!.space).toBe('letters-2');
  await finder.search(T, { text: 'ab' });
  expect(requestEmbedder.embed).toHaveBeenCalledTimes(1);
  const vector = Float32Array.of(2, 2);
  expect(beside.search.mock.calls).toEqual([[T, { text: 'ab', vector, space: 'letters-2' }]]);
});

test('[SE7] an embedder of this thread embeds here, and the rest is asked beside the store', async () => {
  const { finder, beside, embedder } = await setUp();
  const answer = await finder.ask(T, { text: 'aab', near: { kinds: ['pattern'], k: 3 } });
  const embedded = { vector: Float32Array.of(3, 2), space: 'letters-2' };
  expect(answer).toMatchObject({ embedded, embeddingMs: 1, nearMs: 2 });
  expect(beside.ask.mock.calls).toEqual([[T, { text: 'aab', near: { kinds: ['pattern'], k: 3 }, embedded }]]);
  expect(embedder.embed).toHaveBeenCalledTimes(1);
  // A text without tokens for the embedder may still have words.
  await finder.ask(T, { text: ' ', search: {} });
  expect(beside.ask).toHaveBeenLastCalledWith(T, { text: ' ', search: {} });
  expect(await finder.ask(T, { text: 'b' })).toMatchObject({ embedded: { vector: Float32Array.of(1, 2) } });
  expect(beside.ask).toHaveBeenCalledTimes(2);
});

test('[SE7] answers here with the vector, the nearest records and the search results of one tenant', async () => {
  const { finder: _, ...rest } = await setUp();
  const { store, put, services, embedder } = rest;
  const here = createFinder({ store, services, embedder, graph: createMemoryGraph(store, services), rerank: () => null }); // prettier-ignore
  await put('pattern', 'a pattern', Float32Array.of(3, 1));
  await put('fact', 'a fact', Float32Array.of(3, 1));
  await put('fact', 'a fact of others', Float32Array.of(3, 1), 'other');
  const answer = await here.ask(T, { text: 'aa', near: { kinds: ['pattern'], k: 3 }, search: { kinds: ['fact'] } });
  expect(answer.near!.map(({ record }) => [record.kind, record.vector])).toEqual([['pattern', null]]);
  expect(answer.found!.results.map(({ text }) => text)).toEqual(['a fact']);
  // Nearest records are optional: when that query fails, search still returns results.
  store.onCall = (operation, query) => {
    if (operation === 'nearest' && (query as { k: number }).k === 3) throw new RuvLLMError('io', 'gone');
  };
  const less = await here.ask(T, { text: 'aa', near: { kinds: ['pattern'], k: 3 }, search: { kinds: ['fact'] } });
  expect(less.near).toBeNull();
  expect(less.found!.results).toHaveLength(1);
});

test.each(['io', 'disk_full'] as const)(
  '[SE7] a disk that fails (%s) is the business of the store here',
  async (code) => {
    const { finder, beside, put } = await setUp();
    await put('fact', 'a fact', Float32Array.of(3, 1));
    beside.ask.mockRejectedValue(new RuvLLMError(code, 'gone'));
    beside.search.mockRejectedValue(new RuvLLMError(code, 'gone'));
    expect((await finder.ask(T, { text: 'aa', search: {} })).found!.results).toHaveLength(1);
    expect((await finder.search(T, { vector: Float32Array.of(1, 0), space: 'letters-2' })).results).toHaveLength(1);
    beside.ask.mockRejectedValue(new RuvLLMError('invalid_option', 'k'));
    await expect(finder.ask(T, { text: 'aa', search: {} })).rejects.toThrow('k');
  },
);

test('[SE7] a store that is another one than it should be, and our own ranking, are asked here', async () => {
  const degraded = await setUp({ degraded: () => 'the disk failed' });
  await degraded.finder.ask(T, { text: 'aa', search: {} });
  expect(degraded.beside.ask).not.toHaveBeenCalled();
  const ranked = await setUp({ countTokens: () => 1 });
  await ranked.finder.search(T, { text: 'aa' });
  await ranked.finder.ask(T, { text: 'aa', search: {} });
  expect(ranked.beside.ask).not.toHaveBeenCalled();
  expect(ranked.beside.search).not.toHaveBeenCalled();
});

test('[SE6] where something ranks for a tenant it is looked for here, and nowhere else', async () => {
  const rank = { of: (tenant: string) => (tenant === T ? () => null : null), forget: () => {} };
  const { finder, beside, put } = await setUp({ rerank: () => rank });
  await put('fact', 'a fact', Float32Array.of(3, 1));
  const found = await finder.search(T, { vector: Float32Array.of(3, 1), space: 'letters-2', k: 1 });
  expect(found.results.map(({ text }) => text)).toEqual(['a fact']);
  const { found: asked } = await finder.ask(T, { text: 'aa', search: { k: 1 } });
  expect(asked!.results).toHaveLength(1);
  expect([beside.search.mock.calls, beside.ask.mock.calls]).toEqual([[], []]);
  // Who asks for what is near alone needs no order, and for others there is none.
  await finder.ask(T, { text: 'aa', near: { kinds: ['pattern'], k: 3 } });
  await finder.ask('other', { text: 'aa', search: { k: 1 } });
  expect(beside.ask.mock.calls.map(([tenant]) => tenant)).toEqual([T, 'other']);
});

test('[SE7] a text for another space than its own is refused here, and a vector stays what it is', async () => {
  const { finder, beside, embedder } = await setUp();
  await expect(finder.search(T, { text: 'aa', space: 'other' })).rejects.toThrow('pass a vector instead of text');
  await expect(finder.search(T, {})).rejects.toThrow('needs text or vector');
  await finder.search(T, { text: 'aa', space: 'letters-2' });
  expect(beside.search).not.toHaveBeenCalled();
  vi.mocked(embedder.embed).mockClear();
  const vector = Float32Array.of(0, 1);
  await finder.search(T, { text: 'aa', vector });
  await finder.search(T, { vector });
  await finder.search(T, { vector, space: 'other' });
  expect(embedder.embed).not.toHaveBeenCalled();
  expect(beside.search.mock.calls.map(([, query]) => query)).toEqual([
    { text: 'aa', vector, space: 'letters-2' },
    { vector, space: 'letters-2' },
    { vector, space: 'other' },
  ]);
});

test('[SE6] the ranking is asked for by the space of the vector; without an embedder there is none', async () => {
  const spaces: string[] = [];
  const rank = { of: (_: string, space: string) => (spaces.push(space), null), forget: () => {} };
  const seeing = await setUp({ rerank: () => rank });
  await seeing.finder.search(T, { text: 'aa' });
  await seeing.finder.search(T, { vector: Float32Array.of(0, 1), space: 'other' });
  await seeing.finder.ask(T, { text: 'aa', search: {} });
  await seeing.finder.ask(T, { text: ' ', search: {} });
  const blind = await setUp({ rerank: () => rank, embedder: null });
  await blind.finder.search(T, { vector: Float32Array.of(0, 1) });
  await blind.finder.search(T, { text: 'aa' });
  expect(spaces).toEqual(['letters-2', 'other', 'letters-2', 'none', 'none', 'none']);
  expect(blind.beside.search.mock.calls.map(([, query]) => query)).toEqual([{ vector: Float32Array.of(0, 1) }, { text: 'aa' }]); // prettier-ignore
});

test('[SE4] a budget counts the tokens of the model where there is one, and says where it estimates', async () => {
  const query = { text: 'aa', tokenBudget: 100 };
  for (const counter of [{ countTokens: (text: string) => 2 * text.length }, {}]) {
    const { put, ...rest } = await setUp();
    await put('fact', 'a fact', Float32Array.of(3, 1));
    const { store, services, embedder } = rest;
    const here = createFinder({ store, services, embedder, graph: createMemoryGraph(store, services), rerank: () => null, ...counter }); // prettier-ignore
    const isCounted = 'countTokens' in counter;
    // "[1] a fact" and the end of its line.
    expect((await here.search(T, query)).context).toMatchObject({ numTokens: isCounted ? 22 : 3, isEstimated: !isCounted }); // prettier-ignore
  }
});
