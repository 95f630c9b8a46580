import { expect, test } from 'vitest';
import type { MemoryGraph, SourceRating } from '../graph/graph.ts';
import type { MemoryRecord, MemoryStore } from '../types.ts';
import { feedbackBoosts, MAX_FEEDBACK_BOOST } from './feedback.ts';

/** Answers with their vectors, and ratings that cite them. */
async function boostsOf(answers: Record<string, Partial<MemoryRecord>>, ratings: readonly SourceRating[]) {
  const whole = (id: string): MemoryRecord =>
    ({ id, kind: 'trajectory', space: 's', vector: Float32Array.of(1, 0, 0, 0), ...answers[id] }) as MemoryRecord;
  const store = {
    get: async (_: string, ids: readonly string[]) => ids.map((id) => (id in answers ? whole(id) : null)),
  };
  const graph = { ratings: async () => ratings };
  const sourceIds = ['x', 'y'];
  const vector = Float32Array.of(1, 0, 0, 0);
  const boosts = await feedbackBoosts(store as unknown as MemoryStore, graph as unknown as MemoryGraph, { tenant: 't', vector, space: 's', sourceIds }); // prettier-ignore
  return Object.fromEntries(boosts);
}
const rating = (sourceId: string, answerId: string, effect: number): SourceRating => ({ sourceId, answerId, effect });

test('ratings add up, each as far as its question is like this one', async () => {
  const half = { vector: Float32Array.of(1, 1, 1, 1) }; // a cosine of exactly 0.5
  const boosts = await boostsOf({ a: {}, b: half }, [rating('x', 'a', 0.01), rating('x', 'b', 0.04), rating('y', 'b', -0.02)]); // prettier-ignore
  expect(boosts).toEqual({ x: expect.closeTo(0.03), y: expect.closeTo(-0.01) });
});

test('ratings of other questions, spaces, kinds and of deleted answers do not count', async () => {
  const answers = {
    unlike: { vector: Float32Array.of(0.57, 1, 0, 0) }, // a cosine of 0.495
    spaced: { space: 'other' },
    linked: { kind: 'fact' },
    bare: { vector: null },
  } as const;
  const ratings = ['unlike', 'spaced', 'linked', 'bare', 'deleted'].map((id) => rating('x', id, 0.05));
  expect(await boostsOf(answers, ratings)).toEqual({});
});

test('a boost ends at the limit in both directions', async () => {
  const boosts = await boostsOf({ a: {} }, [rating('x', 'a', 0.5), rating('y', 'a', -0.5)]);
  expect(boosts).toEqual({ x: MAX_FEEDBACK_BOOST, y: -MAX_FEEDBACK_BOOST });
});
