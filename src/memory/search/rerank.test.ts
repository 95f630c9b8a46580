import { describe, expect, test } from 'vitest';
import { createMemoryGraph } from '../graph/graph.ts';
import { nodeToRecord } from '../schemas/node.ts';
import { createTestServices, createTestStore } from '../test-store.contract.ts';
import { createMemorySearch } from './search.ts';
import type { Rerank, RerankRequest } from './rerank.ts';

const T = 'acme';
const SPACE = 'plane';
const DAY_MS = 86_400_000;
const embedder = { fingerprint: SPACE, dim: 2, embed: async () => Float32Array.of(1, 0) };

async function setUp(rerank?: Rerank) {
  const services = createTestServices();
  const store = createTestStore(services);
  const graph = createMemoryGraph(store, services);
  const search = createMemorySearch({ store, services, graph, embedder, ...(rerank === undefined ? {} : { rerank }) });
  const add = async (text: string, angle: number | null): Promise<string> => {
    const id = services.newId();
    const node = { id, kind: 'fact' as const, text, source: null, topic: null, quality: null, metadata: {}, expiresMs: null }; // prettier-ignore
    const embedding = angle === null ? null : Float32Array.of(Math.cos(angle), Math.sin(angle));
    await store.put([nodeToRecord({ ...node, embedding, space: angle === null ? null : SPACE }, T)]);
    return id;
  };
  const a = await add('first of all', 0.1);
  const b = await add('something second', 0.5);
  const c = await add('linked only to b', null);
  await graph.link(T, [
    { from: b, to: a, relation: 'cites', weight: 2, confidence: 0.5 },
    { from: b, to: c, relation: 'derived', weight: 1, confidence: 1 },
  ]);
  services.timeMs += 3 * DAY_MS;
  const texts = async (k = 10) =>
    (await search.search(T, { text: 'x', k, expandHops: 1, tokenBudget: 1000 })).results.map(({ text }) => text);
  return { services, store, search, texts, ids: [a, b, c] };
}

describe('[SE6] re-ranking', () => {
  test('gets every candidate with its edges to the others', async () => {
    const seen: RerankRequest[] = [];
    const { texts, ids } = await setUp((request) => {
      seen.push(request);
      return null;
    });
    const plain = await setUp();
    expect(await texts()).toEqual(await plain.texts());
    const { tenant, space, query, candidates } = seen[0]!;
    expect(candidates.slice(0, 2).every(({ record }) => record.vector instanceof Float32Array)).toBe(true);
    expect([tenant, space, [...query]]).toEqual([T, SPACE, [1, 0]]);
    expect(candidates.map(({ record, hops }) => [record.id, hops])).toEqual([
      [ids[0], 0],
      [ids[1], 0],
      [ids[2], 1],
    ]);
    const cites = { relation: 'cites', weight: 2, confidence: 0.5, ageMs: 3 * DAY_MS };
    const derived = { relation: 'derived', weight: 1, confidence: 1, ageMs: 3 * DAY_MS };
    expect(candidates.map(({ edges }) => edges)).toEqual([
      [{ other: 1, ...cites }],
      expect.arrayContaining([
        { other: 0, ...cites },
        { other: 2, ...derived },
      ]),
      [{ other: 1, ...derived }],
    ]);
    expect(candidates[2]).toMatchObject({
      similarity: null,
      score: expect.closeTo(Math.cos(0.5) * 0.8 * 0.5 ** 0.1, 4),
    });
  });

  test('decides the order of the results, before they are cut and packed', async () => {
    const { search, texts } = await setUp(async ({ candidates }) => candidates.map((_, i) => i));
    expect(await texts()).toEqual(['linked only to b', 'something second', 'first of all']);
    expect(await texts(1)).toEqual(['linked only to b']);
    const { results, context } = await search.search(T, { text: 'x', expandHops: 1, tokenBudget: 1000 });
    expect(results.map(({ score }) => score)).toEqual([2, 1, 0]);
    expect(results.map(({ record }) => record.vector)).toEqual([null, null, null]);
    expect(context!.text).toMatch(/^\[1\] linked only to b\n\[2\] something second/);
  });

  test('gets no more than twice the nearest: the best of what was reached', async () => {
    let count = 0;
    const { search } = await setUp(({ candidates }) => {
      count = candidates.length;
      return null;
    });
    await search.search(T, { text: 'x', k: 1, numCandidates: 1, expandHops: 2 });
    expect(count).toBe(2);
  });

  test('that gives other than a number for each is a bug, and told', async () => {
    const short = await setUp(() => [1]);
    await expect(short.texts()).rejects.toThrow('re-ranking 3 candidates gave 1 scores');
    const broken = await setUp(({ candidates }) => candidates.map(() => NaN));
    await expect(broken.texts()).rejects.toThrow('score NaN');
  });
});
