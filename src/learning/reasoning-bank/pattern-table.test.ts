import { describe, expect, test } from 'vitest';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import { createReasoningBank } from './bank.ts';
import { patternToRecord, type PatternWords } from './pattern.ts';
import { createPatternTable } from './pattern-table.ts';
import { createTrajectories } from '../trajectories/trajectories.ts';

const DIM = 96;
const sample = { count: 3, mean: 0.9, variance: 0 };
const words = (id: string): PatternWords => ({ id, text: id, verdict: 'success', support: 3, confidence: 0.5, numUses: 0, lastUsedMs: 1, quality: sample, models: {}, recommendedModel: null }); // prettier-ignore

function createRandom(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff) / 0x7fffffff;
}

/** Points around centers, as embeddings of similar requests are; never negative, as those of some embedders. */
function clustered(count: number, seed: number, isPositive: boolean): Float32Array[] {
  const random = createRandom(seed);
  const value = (): number => (isPositive ? random() : random() + random() - 1);
  const centers = Array.from({ length: 40 }, () => Float32Array.from({ length: DIM }, value));
  return Array.from({ length: count }, (_, i) => centers[i % 40]!.map((one) => one + 0.3 * value()));
}

const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const cosine = (a: Float32Array, b: Float32Array): number => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

describe('a table of patterns', () => {
  test.each([
    [5, false],
    [256, true],
    [1200, false],
    [1200, true],
  ])('finds the nearest of %i vectors as an exact search does', (count, isPositive) => {
    const table = createPatternTable(DIM);
    const vectors = clustered(count, 7, isPositive);
    vectors.forEach((vector, i) => table.set(words(String(i)), vector));
    let lost = 0;
    const queries = clustered(50, 8, isPositive).map((one, i) =>
      one.map((value, j) => value + vectors[i % count]![j]!),
    );
    for (const query of queries) {
      const exact = vectors.map((vector) => cosine(query, vector)).toSorted((a, b) => b - a);
      const found = table.search(query, 5);
      expect(found).toHaveLength(Math.min(5, count));
      expect(Math.abs(found[0]!.similarity - cosine(query, vectors[Number(found[0]!.pattern.id)]!))).toBeLessThan(0.01);
      found.forEach(({ pattern }, i) => (lost += exact[i]! - cosine(query, vectors[Number(pattern.id)]!)));
    }
    // Similarity lost per result: neighbours that are about as near may change places.
    expect(lost / (50 * Math.min(5, count))).toBeLessThan(0.001);
  });

  test('replaces and deletes patterns, and grows', () => {
    const table = createPatternTable(DIM);
    const vectors = clustered(600, 3, false);
    vectors.forEach((vector, i) => table.set(words(String(i)), vector));
    table.set(words('0'), vectors[599]!);
    expect(table.size).toBe(600);
    for (let i = 1; i < 599; i++) table.delete(String(i));
    table.delete('absent');
    expect(table.search(vectors[599]!, 3).map(({ pattern }) => pattern.id)).toEqual(['0', '599']);
    expect(table.search(vectors[599]!, 3)[0]!.similarity).toBeCloseTo(1, 2);
  });
});

describe('a bank with its patterns in this thread', () => {
  const SPACE = 'words-1';
  async function setUp(count = 120) {
    const memory = await openTestMemory();
    const { store, services, watch } = memory;
    const bank = createReasoningBank({ store, services, watch, trajectories: createTrajectories(store, services) });
    const vectors = clustered(count, 5, false);
    const put = (i: number, tenant = 'alice') =>
      store.put([patternToRecord({ ...words(uuidOf(i)), embedding: vectors[i]!, space: SPACE }, tenant)]);
    const search = async (i: number, tenant = 'alice') =>
      (await bank.search(tenant, { vector: vectors[i]!, space: SPACE, k: 1 }))[0]?.pattern.id;
    return { memory, bank, put, search, vectors };
  }
  const uuidOf = (i: number): string => `01900000-0000-7000-8000-${i.toString(16).padStart(12, '0')}`;

  test('searches the memory until they are loaded, then this thread alone', async () => {
    const { memory, bank, put, search } = await setUp();
    for (let i = 0; i < 110; i++) await put(i);
    await put(110, 'bob');
    expect(bank.isAtHand('alice', SPACE)).toBe(false);
    expect(await search(7)).toBe(uuidOf(7));
    await expect.poll(() => bank.isAtHand('alice', SPACE)).toBe(true);
    const { nearest } = memory.store;
    Object.assign(memory.store, { nearest: () => expect.fail('asked the store') });
    expect(await search(7)).toBe(uuidOf(7));
    expect(await search(110)).not.toBe(uuidOf(110)); // another tenant's
    Object.assign(memory.store, { nearest });
  });

  test('follows writes, deletions and erasure', async () => {
    const { memory, bank, put, search } = await setUp();
    await put(1);
    await search(1);
    await put(2); // while the first is being loaded
    await expect.poll(() => bank.isAtHand('alice', SPACE)).toBe(true);
    await put(3);
    expect([await search(1), await search(2), await search(3)]).toEqual([1, 2, 3].map(uuidOf));
    await memory.store.delete('alice', [uuidOf(3)]);
    expect(await search(3)).not.toBe(uuidOf(3));
    await memory.erase({ tenant: 'alice' });
    expect(bank.isAtHand('alice', SPACE)).toBe(false);
    expect(await search(1)).toBeUndefined();
  });

  test('does not keep patterns that other processes change', async () => {
    const { memory, search } = await setUp();
    const { store, services } = memory;
    const bank = createReasoningBank({
      store,
      services,
      watch: null,
      trajectories: createTrajectories(store, services),
    });
    await search(1);
    expect(bank.isAtHand('alice', SPACE)).toBe(false);
  });
});
