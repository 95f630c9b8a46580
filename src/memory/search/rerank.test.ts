import { describe, expect, test } from 'vitest';
import { createMemoryGraph } from '../graph/graph.ts';
import { nodeToRecord } from '../schemas/node.ts';
import { createTestServices, createTestStore } from '../test-store.contract.ts';
import { createMemorySearch } from './search.ts';
import type { EdgeQuery, MemoryEdge, MemoryStore } from '../types.ts';
import { MAX_RERANKED, type RankCandidates, type RerankRequest, rescore } from './rerank.ts';

const T = 'acme';
const SPACE = 'plane';
const DAY_MS = 86_400_000;
const embedder = { fingerprint: SPACE, dim: 2, embed: async () => Float32Array.of(1, 0) };

async function setUp(rank?: RankCandidates) {
  const services = createTestServices();
  const store = createTestStore(services);
  const graph = createMemoryGraph(store, services);
  const asked: unknown[] = [];
  const rerank = rank === undefined ? null : { of: (...given: unknown[]) => (asked.push(given), rank), forget() {} };
  const search = createMemorySearch({ store, services, graph, embedder, rerank: () => rerank });
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
  return { services, store, search, texts, add, asked, ids: [a, b, c] };
}

describe('[SE6] re-ranking', () => {
  test('gets every candidate with its edges to the others', async () => {
    const seen: RerankRequest[] = [];
    const { texts, ids, asked } = await setUp((request) => {
      seen.push(request);
      return null;
    });
    const plain = await setUp();
    expect(await texts()).toEqual(await plain.texts());
    const { space, query, candidates } = seen[0]!;
    expect(asked).toEqual([[T, SPACE]]);
    expect(candidates.slice(0, 2).every(({ record }) => record.vector instanceof Float32Array)).toBe(true);
    expect([space, [...query]]).toEqual([SPACE, [1, 0]]);
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
    const { search, texts } = await setUp(({ candidates }) => candidates.map((_, i) => i));
    expect(await texts()).toEqual(['linked only to b', 'something second', 'first of all']);
    expect(await texts(1)).toEqual(['linked only to b']);
    const { results, context } = await search.search(T, { text: 'x', expandHops: 1, tokenBudget: 1000 });
    expect(results.map(({ score }) => score)).toEqual([2, 1, 0]);
    expect(results.map(({ record }) => record.vector)).toEqual([null, null, null]);
    expect(context!.text).toMatch(/^\[1\] linked only to b\n\[2\] something second/);
  });

  test('gets the best so many; the others stand behind them in the order they had', async () => {
    let count = 0;
    const { search, add } = await setUp(({ candidates }) => {
      count = candidates.length;
      return candidates.map((_, i) => i - 100);
    });
    // Nearer than the two that are there; four of the first are copies, so that places are left for those behind.
    const words = (i: number): string => Array.from({ length: 5 }, (_, n) => `w${i < 5 ? 0 : i}x${n}`).join(' ');
    for (let i = 0; i < MAX_RERANKED + 6; i++) await add(words(i), 0.001 * i);
    const { results, candidates } = await search.search(T, { text: 'x', k: MAX_RERANKED });
    expect(count).toBe(MAX_RERANKED);
    const behind = [0, 1, 2, 3].map((n) => words(MAX_RERANKED + n));
    const first = Array.from({ length: MAX_RERANKED - 4 }, (_, i) => words(MAX_RERANKED - 1 - i));
    expect(results.map(({ text }) => text)).toEqual([...first, ...behind]);
    expect(results.map(({ score }) => score)).toEqual(results.map(({ score }) => score).toSorted((a, b) => b - a));
    // Re-ranking leaves the candidates unchanged.
    expect(candidates.map(({ score }) => score)).toEqual(candidates.map(({ similarity }) => similarity));
    expect(candidates.length).toBe(MAX_RERANKED);
  });

  test('where nothing ranks for the tenant, everything is as without, and no vector and no edge among candidates is read', async () => {
    const plain = await setUp();
    const { search, store } = await setUp();
    const calls: [string, unknown][] = [];
    store.onCall = (operation, argument) => void calls.push([operation, argument]);
    const asked = { text: 'x', k: 10, expandHops: 1, tokenBudget: 1000 };
    const found = await search.search(T, asked);
    expect(JSON.stringify(found)).toBe(JSON.stringify(await plain.search.search(T, asked)));
    const ranked = createMemorySearch({
      store: plain.store, services: plain.services, graph: createMemoryGraph(plain.store, plain.services), embedder,
      rerank: () => ({ of: async () => null, forget() {} }),
    }); // prettier-ignore
    const before = calls.length;
    plain.store.onCall = (operation, argument) => void calls.push([operation, argument]);
    expect(JSON.stringify(await ranked.search(T, asked))).toBe(JSON.stringify(found));
    expect(JSON.stringify(calls.slice(before))).toBe(JSON.stringify(calls.slice(0, before)));
    calls.length = 0;
    await ranked.search(T, { text: 'x' });
    const rated = { direction: 'in', relations: ['cites'] };
    expect(calls).toMatchObject([
      ['nearest', { withVectors: false }],
      ['match', { withVectors: false }],
      ['edgesOf', rated],
      ['get', [expect.any(String)]],
    ]);
  });

  test('leaves vectors in the results that are asked for with them', async () => {
    const { search } = await setUp(({ candidates }) => candidates.map((_, i) => i));
    const { results } = await search.search(T, { text: 'x', k: 2, withVectors: true });
    expect(results.map(({ record }) => record.vector?.length)).toEqual([2, 2]);
  });

  describe('of some of the candidates', () => {
    const foundOf = (...scores: readonly number[]) => scores.map((score, i) => ({ record: { id: `r${i}` } as never, similarity: score, score, hops: 0 })); // prettier-ignore
    const request = { tenant: T, space: SPACE, query: Float32Array.of(1, 0) };

    test('puts the others a whole point and their old distances behind the worst', async () => {
      const store = { edgesOf: async () => [] } as unknown as MemoryStore;
      const scores = async (...found: number[]) => (await rescore(() => [5, 3], store, 0, request, foundOf(...found), 2)).map(({ score }) => score); // prettier-ignore
      expect(await scores(0.875, 0.75, 0.5, 0.25)).toEqual([5, 3, 2, 1.75]);
      expect(await scores(0.875, 0.75)).toEqual([5, 3]);
    });

    test('gets their edges to each other only, read in one call for 1000', async () => {
      const queries: EdgeQuery[] = [];
      const edge = (from: string, to: string, updatedMs: number): MemoryEdge => ({ from, to, relation: 'cites', weight: 1, confidence: 1, updatedMs }); // prettier-ignore
      const edges = [edge('r0', 'r1', 4), edge('r1', 'r0', 9), edge('r0', 'r0', 0), edge('r0', 'away', 0), edge('away', 'r1', 0)]; // prettier-ignore
      const store = { edgesOf: async (_: string, query: EdgeQuery) => (queries.push(query), edges) } as unknown as MemoryStore; // prettier-ignore
      let seen: RerankRequest | null = null;
      await rescore((asked) => ((seen = asked), null), store, 7, request, foundOf(...Array<number>(1000).fill(1)), 1000); // prettier-ignore
      const rest = { relation: 'cites', weight: 1, confidence: 1 };
      const both = (other: number) => [{ other, ...rest, ageMs: 3 }, { other, ...rest, ageMs: 0 }]; // prettier-ignore
      expect(seen!.candidates.map((one) => one.edges).slice(0, 3)).toEqual([both(1), both(0), []]);
      expect(queries.map(({ ids, direction }) => [ids.length, direction])).toEqual([[1000, 'out']]);
    });
  });

  test('throws for a re-ranking without a number for each candidate', async () => {
    const short = await setUp(() => [1]);
    await expect(short.texts()).rejects.toThrow('re-ranking 3 candidates gave 1 scores');
    const broken = await setUp(({ candidates }) => candidates.map(() => NaN));
    await expect(broken.texts()).rejects.toThrow('score NaN');
  });
});
