import { describe, expect, test } from 'vitest';
import { START_MS, testMemoryStore } from '../memory-store.contract.ts';
import { idOf, recordOf, vectorOf } from '../store-setup.contract.ts';
import { createInMemoryStore } from './in-memory-store.ts';

testMemoryStore('in memory', async () => {
  const clock = { ms: START_MS };
  return { clock, store: createInMemoryStore({ now: () => clock.ms }), reopen: null };
});

describe('limits', () => {
  const now = (): number => START_MS;

  test('[MS17] evicts the least recently used record with its edges, and reports it', async () => {
    const store = createInMemoryStore({ now, limits: { maxRecords: 3 } });
    await store.put([1, 2, 3].map((i) => recordOf(i)));
    await store.putEdges('alpha', [{ from: idOf(2), to: idOf(3), relation: 'r', weight: 1, confidence: 1 }]);
    await store.get('alpha', [idOf(1)]);
    expect((await store.stats(null)).degraded).toBeNull();
    await store.put([recordOf(4, { tenant: 'beta' })]);
    expect((await store.get('alpha', [1, 2, 3].map(idOf))).map((record) => record !== null)).toEqual([
      true,
      false,
      true,
    ]);
    expect(await store.stats(null)).toMatchObject({ numRecords: { fact: 3 }, numEdges: 0 });
    expect(store.dropped).toBe(1);
    expect((await store.stats(null)).degraded).toContain('1 records and edges were dropped to stay below 3 records');
    await store.checkIntegrity();
  });

  test('[MS17] bounds bytes and edges', async () => {
    const store = createInMemoryStore({ now, limits: { maxBytes: 20_000, maxEdges: 2 } });
    for (let i = 0; i < 30; i++) await store.put([recordOf(i, { vector: new Float32Array(500).fill(1), space: 's' })]);
    const { numRecords } = await store.stats(null);
    expect(numRecords.fact).toBeGreaterThan(3);
    expect(numRecords.fact).toBeLessThan(9);
    const last = idOf(29);
    for (const relation of ['a', 'b', 'c']) await store.putEdges('alpha', [{ from: last, to: last, relation, weight: 1, confidence: 1 }]); // prettier-ignore
    const edges = await store.edgesOf('alpha', { ids: [last], direction: 'out', limit: 9 });
    expect(edges.map(({ relation }) => relation)).toEqual(['b', 'c']);
    await expect(store.nearest('alpha', { kinds: ['fact'], vector: vectorOf(1), space: 's', k: 1 })).rejects.toThrow(
      'length',
    );
  });

  test('[MS17] limits that are none are refused', () => {
    expect(() => createInMemoryStore({ now, limits: { maxRecords: 0 } })).toThrow('maxRecords');
    expect(() => createInMemoryStore({ now, limits: { max: 1 } as never })).toThrow('unknown option "max"');
  });
});
