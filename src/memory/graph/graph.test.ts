import { describe, expect, test } from 'vitest';
import { allEdgesOf, createTestServices, createTestStore } from '../test-store.contract.ts';
import { createMemoryGraph, type GraphOptions, type NewEdge } from './graph.ts';

const DAY_MS = 86_400_000;
const T = 'acme';
const id = (index: number): string => `0199a0b4-7c00-7000-8000-${String(index).padStart(12, '0')}`;
const edge = (from: number, to: number, weight = 1, relation = 'cites', confidence = 1): NewEdge => ({
  from: id(from),
  to: id(to),
  relation,
  weight,
  confidence,
});
const short = (text: string): number => Number(text.slice(-12));

async function setUp(edges: readonly NewEdge[], options?: GraphOptions, numNodes = 20) {
  const services = createTestServices();
  const store = createTestStore(services);
  const record = {
    tenant: T,
    kind: 'fact',
    expiresMs: null,
    fields: {},
    body: null,
    vector: null,
    space: null,
  } as const;
  await store.put(Array.from({ length: numNodes }, (_, index) => ({ ...record, id: id(index) })));
  const graph = createMemoryGraph(store, services, options);
  if (edges.length > 0) await graph.link(T, edges);
  return { services, store, graph };
}

describe('[GR1] neighbours', () => {
  test('are filtered by relation and direction, heaviest first', async () => {
    const { graph } = await setUp([edge(0, 1, 1), edge(0, 2, 3), edge(3, 0, 2), edge(0, 4, 9, 'follows')]);
    const ids = async (query?: object) => (await graph.neighbours(T, id(0), query)).map(({ id }) => short(id));
    expect(await ids()).toEqual([4, 2, 3, 1]);
    expect(await ids({ relations: ['cites'] })).toEqual([2, 3, 1]);
    expect(await ids({ direction: 'out', relations: ['cites'] })).toEqual([2, 1]);
    expect(await ids({ direction: 'in' })).toEqual([3]);
    expect(await ids({ limit: 1 })).toEqual([4]);
    await expect(graph.neighbours(T, id(0), { limit: 0 })).rejects.toThrow(/limit/);
    await expect(graph.neighbours(T, id(0), { depth: 3 } as never)).rejects.toThrow(/depth/);
  });
});

describe('[GR2] expansion', () => {
  test('reaches k hops, each record once by its shortest path, strongest first', async () => {
    const { graph } = await setUp([
      edge(0, 1, 0.5),
      edge(1, 2, 0.5),
      edge(0, 3, 1, 'cites', 0.9),
      edge(3, 2, 1),
      edge(2, 5),
      edge(5, 6),
    ]);
    const reached = await graph.expand(T, [id(0)], { hops: 2 });
    expect(reached.map(({ id, hops, strength }) => [short(id), hops, strength])).toEqual([
      [3, 1, 0.9],
      [2, 2, 0.9],
      [1, 1, 0.5],
    ]);
    expect((await graph.expand(T, [id(0)], { hops: 6 })).map(({ id }) => short(id)).sort()).toEqual([1, 2, 3, 5, 6]);
    expect((await graph.expand(T, [id(2)], { hops: 1, direction: 'out' })).map(({ id }) => short(id))).toEqual([5]);
    expect((await graph.expand(T, [id(2)], { hops: 1, direction: 'in' })).map(({ id }) => short(id)).sort()).toEqual([
      1, 3,
    ]);
  });
  test('is limited by maxNodes and terminates in a cycle', async () => {
    const { graph } = await setUp([
      ...Array.from({ length: 15 }, (_, index) => edge(0, index + 1, index + 1)),
      edge(1, 0),
    ]);
    expect((await graph.expand(T, [id(0)], { maxNodes: 4 })).length).toBe(4);
    expect((await graph.expand(T, [id(0)], { hops: 6 })).length).toBe(15);
    await expect(graph.expand(T, [id(0)], { hops: 7 })).rejects.toThrow(/hops/);
  });
});

describe('[GR4] weights', () => {
  test('halve with each half-life, and stay when the clock goes back', async () => {
    const { graph, services } = await setUp([edge(0, 1, 8)], { halfLifeMs: 10 * DAY_MS });
    const weight = async () => (await graph.neighbours(T, id(0)))[0]!.weight;
    services.timeMs += 20 * DAY_MS;
    expect(await weight()).toBe(2);
    services.timeMs -= 50 * DAY_MS;
    expect(await weight()).toBe(8);
  });
});

describe('[GR7] ratings', () => {
  const sources = (...used: (boolean | null)[]) => used.map((isUsed, i) => ({ id: id(i + 1), isUsed }));
  const effects = async ({ graph }: Awaited<ReturnType<typeof setUp>>, limit = 10) =>
    (await graph.ratings(T, [id(1), id(2), id(3)], limit)).map((one) => [short(one.answerId), short(one.sourceId), one.effect]); // prettier-ignore

  test('a good answer adds 5 % to the sources it used, a bad one subtracts 2 %; unused sources have no edge', async () => {
    const world = await setUp([]);
    await world.graph.rate(T, { id: id(10), verdict: 'success', sources: sources(true, false, null) });
    world.services.timeMs++;
    await world.graph.rate(T, { id: id(11), verdict: 'failure', sources: sources(false, true, true) });
    expect(await effects(world)).toEqual([
      [11, 2, expect.closeTo(-0.02, 6)],
      [11, 3, expect.closeTo(-0.02, 6)],
      [10, 1, expect.closeTo(0.05, 6)],
    ]);
    expect(await effects(world, 1)).toHaveLength(1);
  });

  test('only the last rating of an answer counts, and a neutral one removes it', async () => {
    const world = await setUp([]);
    const rate = (verdict: 'success' | 'failure' | 'partial' | 'unknown', ...used: (boolean | null)[]) =>
      world.graph.rate(T, { id: id(10), verdict, sources: sources(...used) });
    for (let i = 0; i < 5; i++) await rate('success', true, true);
    expect(await effects(world)).toEqual([
      [10, 1, expect.closeTo(0.05, 6)],
      [10, 2, expect.closeTo(0.05, 6)],
    ]);
    await rate('failure', true, false);
    expect(await effects(world)).toEqual([[10, 1, expect.closeTo(-0.02, 6)]]);
    await rate('partial', true, true);
    expect(await effects(world)).toEqual([]);
  });

  test('effects halve with each half-life; deleted sources and answers have none', async () => {
    const world = await setUp([], { halfLifeMs: 10 * DAY_MS });
    await world.store.delete(T, [id(2)]);
    await world.graph.rate(T, { id: id(10), verdict: 'success', sources: sources(true, true) });
    world.services.timeMs += 20 * DAY_MS;
    expect(await effects(world)).toEqual([[10, 1, expect.closeTo(0.0125, 6)]]);
    await world.store.delete(T, [id(10)]);
    expect(await effects(world)).toEqual([]);
    await world.graph.rate(T, { id: id(10), verdict: 'success', sources: sources(true) });
    expect(await effects(world)).toEqual([]);
  });
});

test('[GR5] a record above maxDegree keeps its heaviest edges', async () => {
  const edges = [3, 1, 5, 2, 4].map((weight) => edge(0, weight, weight));
  const { graph } = await setUp([...edges, edge(0, 9, 1, 'follows'), edge(8, 0, 1)], { maxDegree: 3 });
  const out = await graph.neighbours(T, id(0), { direction: 'out' });
  expect(out.map(({ id }) => short(id))).toEqual([5, 4, 3, 9]);
  expect((await graph.neighbours(T, id(0), { direction: 'in' })).length).toBe(1);
});

test('[GR6] rejects invalid edges and writes none of the call', async () => {
  const { graph, store } = await setUp([]);
  for (const bad of [
    edge(0, 1, NaN),
    edge(0, 1, -1),
    edge(0, 1, 1, 'likes'),
    edge(0, 1, 1, 'cites', 2),
    { ...edge(0, 1), extra: 1 },
  ]) {
    await expect(graph.link(T, [edge(0, 2), bad])).rejects.toThrow(expect.objectContaining({ code: 'invalid_option' }));
  }
  expect(await allEdgesOf(store)).toEqual([]);
});
