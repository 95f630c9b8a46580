import { beforeEach, describe, expect, test } from 'vitest';
import { createMemoryGraph } from '../../memory/graph/graph.ts';
import { nodeToRecord } from '../../memory/schemas/node.ts';
import { MAX_RERANKED } from '../../memory/search/rerank.ts';
import {
  createTestServices,
  createTestStore,
  type TestServices,
  type TestStore,
} from '../../memory/test-store.contract.ts';
import { trajectoryFixture } from '../trajectories/harness.contract.ts';
import { createTrajectories, type NewTrajectory, type Trajectories } from '../trajectories/trajectories.ts';
import { conversationsOf } from './conversations.ts';
import { gatherLists } from './rank-examples.ts';
import { splitLists } from './train-rerank.ts';

const T = 'acme';
const SPACE = 'test-2';
let services: TestServices;
let store: TestStore;
let trajectories: Trajectories;
beforeEach(() => {
  services = createTestServices();
  store = createTestStore(services);
  trajectories = createTrajectories(store, services);
});

async function addText(space: string | null = SPACE): Promise<string> {
  const id = services.newId();
  const node = { id, kind: 'fact' as const, text: id, source: null, topic: null, quality: null, metadata: {}, expiresMs: null }; // prettier-ignore
  await store.put([nodeToRecord({ ...node, embedding: space === null ? null : Float32Array.of(1, 0), space }, T)]);
  return id;
}

let numAdded = 0;
async function addRequest(
  marks: readonly (readonly [string, boolean | null])[],
  changes: Partial<NewTrajectory> = {},
): Promise<string> {
  const candidates = marks.map(([id], i) => ({ id, similarity: 0.9 - 0.01 * i, score: 0.9 - 0.01 * i, hops: 0 }));
  const retrieved = marks.map(([id, isUsed]) => ({ id, isUsed }));
  const one = trajectoryFixture(++numAdded, { createdMs: services.timeMs, candidates, retrieved, query: `q ${numAdded}`, ...changes }); // prettier-ignore
  await trajectories.add(T, one);
  return one.requestId;
}

describe('[RK5] lists', () => {
  test('have the ranked candidates with vectors, edges and marks; unshown ones have no mark', async () => {
    const [a, b, c] = [await addText(), await addText('another'), await addText()];
    const edge = { relation: 'same-topic', weight: 2, confidence: 0.5 };
    await createMemoryGraph(store, services).link(T, [{ from: a, to: c, ...edge }]);
    services.timeMs += 1000;
    const id = await addRequest([
      [a, true],
      [b, false],
    ]);
    const whole = (await trajectories.get(T, id))!;
    const candidates = [...whole.candidates!, { id: c, similarity: 0.4, score: 0.6, hops: 1 }];
    await trajectories.remove(T, [{ field: 'requestId', is: '=', value: id }]);
    await addRequest([], { retrieved: whole.retrieved, candidates });
    // Written later: it may know of the answer.
    services.timeMs += 1000;
    await createMemoryGraph(store, services).link(T, [{ from: b, to: a, ...edge }]);
    const { space, examples, requestIds } = await gatherLists(store, trajectories, T);
    expect([space, requestIds.length]).toEqual([SPACE, 1]);
    const { used, candidates: found, query } = examples[0]!;
    expect([...query]).toEqual([...Float32Array.of(0.6, 0.8)]);
    expect(used).toEqual([true, false, null]);
    const link = { relation: 'same-topic', weight: 2, confidence: 0.5, ageMs: 1000 };
    expect(found).toEqual([
      { vector: Float32Array.of(1, 0), similarity: 0.9, score: 0.9, hops: 0, edges: [{ other: 2, ...link }] },
      { vector: null, similarity: null, score: 0.89, hops: 0, edges: [] },
      { vector: Float32Array.of(1, 0), similarity: 0.4, score: 0.6, hops: 1, edges: [{ other: 0, ...link }] },
    ]);
  });

  test('exclude failures, other spaces, requests without both marks and deleted texts', async () => {
    const [a, b, gone] = [await addText(), await addText(), await addText()];
    const both = [
      [a, true],
      [b, false],
    ] as const;
    const kept = await addRequest(both, { quality: 0.9 });
    await addRequest(both, { quality: 0.1 });
    await addRequest(both, { embedding: null, space: null });
    await addRequest([[a, true], [b, null]]); // prettier-ignore
    await addRequest([[a, false], [gone, true]]); // prettier-ignore
    const unrated = await addRequest(both);
    await store.delete(T, [gone]);
    expect((await gatherLists(store, trajectories, T)).requestIds.toSorted()).toEqual([kept, unrated].toSorted());
    await addRequest(both, { space: 'test-3', createdMs: services.timeMs + 5 });
    expect(await gatherLists(store, trajectories, T)).toMatchObject({ space: 'test-3', requestIds: { length: 1 } });
    expect(await gatherLists(store, trajectories, 'other')).toEqual({ space: null, examples: [], requestIds: [] });
  });

  test('are as long as the re-ranked part of a search', async () => {
    const marks: [string, boolean][] = [];
    for (let i = 0; i < 40; i++) marks.push([await addText(), i === 0]);
    await addRequest(marks);
    const { examples } = await gatherLists(store, trajectories, T);
    expect(examples[0]!.candidates).toHaveLength(MAX_RERANKED);
  });
});

describe('[RK6] conversations', () => {
  const asked = (requestId: string, sessionId: string | null, query: string) => ({ requestId, sessionId, query });

  test('join a session and equal questions in any order', () => {
    const all = [
      asked('1', 's1', 'Where is my card?'),
      asked('2', 's1', 'And when?'),
      asked('3', 's2', 'where is my CARD'),
      asked('4', null, 'and when'),
      asked('5', null, 'something else'),
      asked('6', null, '??'),
      asked('7', null, '!!'),
    ];
    const names = conversationsOf(all);
    expect(new Set(names.slice(0, 4)).size).toBe(1);
    expect(new Set(names).size).toBe(4);
    expect(conversationsOf(all.toReversed()).toReversed()).toEqual(names);
  });

  test('are on one side of the split, in proportion to its parts', () => {
    const examples = Array.from({ length: 200 }, (_, i) => ({ query: new Float32Array(2), candidates: [], used: [], group: `g${i % 50}` })); // prettier-ignore
    const parts = splitLists(examples);
    const groupsOf = (part: readonly number[]): Set<string> => new Set(part.map((i) => examples[i]!.group));
    expect([parts.train.length, parts.tuned.length, parts.heldOut.length]).toEqual([120, 40, 40]);
    const sizes = [parts.train, parts.tuned, parts.heldOut].map((part) => groupsOf(part).size);
    expect(sizes).toEqual([30, 10, 10]);
    expect([...groupsOf(parts.train)].some((name) => groupsOf(parts.heldOut).has(name))).toBe(false);
    expect(splitLists(examples)).toEqual(parts);
  });
});
