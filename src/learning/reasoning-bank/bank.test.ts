import { beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import {
  createTestServices,
  createTestStore,
  type TestServices,
  type TestStore,
} from '../../memory/test-store.contract.ts';
import { trajectoryFixture } from '../trajectories/harness.contract.ts';
import { createTrajectories, type NewTrajectory, type Trajectories } from '../trajectories/trajectories.ts';
import { createReasoningBank, type ReasoningBank } from './bank.ts';
import { BANK_SOURCE } from './pattern.ts';

const DIM = 16;
let services: TestServices;
let store: TestStore;
let trajectories: Trajectories;
let bank: ReasoningBank;
let numAdded: number;

beforeEach(() => {
  services = createTestServices();
  store = createTestStore(services);
  trajectories = createTrajectories(store, services);
  bank = createReasoningBank({ store, services, trajectories });
  numAdded = 0;
});

/** Near to one of DIM directions. */
function near(topic: number): Float32Array {
  const random = createRandom(1000 + numAdded);
  return Float32Array.from({ length: DIM }, (_, i) => (i === topic ? 1 : 0) + (random.next() - 0.5) * 0.1);
}

async function add(topic: number, quality: number | null, changes: Partial<NewTrajectory> = {}): Promise<void> {
  numAdded++;
  const embedding = near(topic);
  await trajectories.add(
    'acme',
    trajectoryFixture(numAdded, { embedding, quality, query: `topic ${topic}`, ...changes }),
  );
}

const search = (topic: number, k = 3) =>
  bank.search('acme', {
    vector: Float32Array.from({ length: DIM }, (_, i) => (i === topic ? 1 : 0)),
    space: 'test-2',
    k,
  });

describe('distillation', () => {
  test('makes a pattern from each cluster of rated requests (RB1)', async () => {
    for (let i = 0; i < 5; i++) await add(0, 1, { answer: 'At the bank.' });
    for (let i = 0; i < 4; i++) await add(7, 0);
    for (let i = 0; i < 5; i++) await add(3, null);
    expect(await bank.distil('acme')).toMatchObject({ numTrajectories: 9, numCreated: 2, numWaiting: 0 });
    expect(await bank.count('acme')).toBe(2);
    const [good] = await search(0, 1);
    expect(good!.pattern).toMatchObject({ verdict: 'success', support: 5, recommendedModel: null });
    expect(good!.pattern.text).toBe('Asked: topic 0\nA good answer: At the bank.');
    expect(good!.pattern.confidence).toBeCloseTo(5 / 8, 6);
    expect(good!.weight).toBeCloseTo(good!.similarity * good!.pattern.confidence, 6);
    expect((await search(7, 1))[0]!.pattern).toMatchObject({
      verdict: 'failure',
      text: 'Asked: topic 7\nNo answer was good.',
    });
  });

  test('changes nothing without new information (RB2)', async () => {
    for (let topic = 0; topic < 5; topic++) for (let i = 0; i < 6; i++) await add(topic, 0.9);
    await bank.distil('acme');
    const before = JSON.stringify(await search(2, 5));
    const count = await bank.count('acme');
    for (let cycle = 0; cycle < 3; cycle++) {
      expect(await bank.distil('acme')).toMatchObject({
        numTrajectories: 0,
        numCreated: 0,
        numMerged: 0,
        numPruned: 0,
      });
    }
    expect(await bank.count('acme')).toBe(count);
    expect(JSON.stringify(await search(2, 5))).toBe(before);
  });

  test('strengthens existing patterns with similar requests (RB2)', async () => {
    for (let i = 0; i < 4; i++) await add(0, 1);
    await bank.distil('acme');
    const [before] = await search(0, 1);
    for (let i = 0; i < 2; i++) await add(0, 1);
    expect(await bank.distil('acme')).toMatchObject({ numCreated: 0, numMerged: 1 });
    const [after, ...more] = await search(0);
    expect(more).toEqual([]);
    expect(after!.pattern).toMatchObject({ id: before!.pattern.id, support: 6 });
    expect(after!.pattern.confidence).toBeGreaterThan(before!.pattern.confidence);
  });

  test('keeps small clusters waiting for more requests (RB3)', async () => {
    for (let i = 0; i < 2; i++) await add(0, 1);
    expect(await bank.distil('acme')).toMatchObject({ numCreated: 0, numWaiting: 2 });
    await add(0, 1);
    expect(await bank.distil('acme')).toMatchObject({ numCreated: 1, numWaiting: 0 });
  });

  test('changes a verdict only with significant evidence (RB4)', async () => {
    for (const quality of [1, 0.45, 1, 0.4]) await add(11, quality); // mean 0.71, not significant
    for (let i = 0; i < 8; i++) await add(0, i % 2 === 0 ? 1 : 0.9);
    await bank.distil('acme');
    for (let i = 0; i < 3; i++) await add(11, 0.5 + i / 100);
    for (let i = 0; i < 2; i++) await add(0, 0);
    await bank.distil('acme');
    const [unsure] = await search(11, 1);
    expect([unsure!.pattern.verdict, unsure!.pattern.quality.mean < 0.65]).toEqual(['success', true]);
    expect((await search(0, 1))[0]!.pattern.verdict).toBe('success');
    for (let i = 0; i < 5; i++) await add(0, i % 2 === 0 ? 0 : 0.1);
    await bank.distil('acme');
    const { verdict, quality } = (await search(0, 1))[0]!.pattern;
    expect([verdict, quality.mean < 0.1]).toEqual(['failure', true]);
  });

  test('recommends a model that is significantly better (RB4)', async () => {
    for (let i = 0; i < 4; i++) {
      await add(0, i % 2 === 0 ? 0.2 : 0.3, { model: 'small' });
      await add(0, i % 2 === 0 ? 0.8 : 0.9, { model: 'large' });
      await add(5, i % 2 === 0 ? 0.2 : 0.9, { model: 'small' });
      await add(5, i % 2 === 0 ? 0.3 : 0.9, { model: 'large' });
    }
    await bank.distil('acme');
    expect((await search(0, 1))[0]!.pattern.recommendedModel).toBe('large');
    expect((await search(5, 1))[0]!.pattern.recommendedModel).toBeNull();
  });
});

test('deletes unused patterns and keeps used ones (RB5)', async () => {
  for (let i = 0; i < 4; i++) await add(0, 1);
  for (let i = 0; i < 4; i++) await add(9, 1);
  await bank.distil('acme');
  services.timeMs += 20 * 86_400_000;
  const used = (await search(9, 1))[0]!.pattern.id;
  await bank.noteUses('acme', new Map([[used, 3], [services.newId(), 1]])); // prettier-ignore
  services.timeMs += 11 * 86_400_000;
  expect(await bank.distil('acme')).toMatchObject({ numPruned: 1 });
  expect((await search(9))[0]!.pattern.numUses).toBe(3);
  expect(await bank.count('acme')).toBe(1);
});

test('deletes the least valuable patterns above the limit (RB5)', async () => {
  bank = createReasoningBank({ store, services, trajectories }, { maxPatterns: 2 });
  for (let topic = 0; topic < 3; topic++) for (let i = 0; i < 4 + topic; i++) await add(topic, 1);
  expect(await bank.distil('acme')).toMatchObject({ numCreated: 3, numPruned: 1 });
  expect((await search(0)).map(({ pattern }) => pattern.support).sort()).toEqual([5, 6]);
});

test('excludes patterns of other tenants and of users (RB6)', async () => {
  for (let i = 0; i < 4; i++) await add(0, 1);
  await bank.distil('acme');
  const vector = near(0);
  const own = { id: services.newId(), tenant: 'acme', kind: 'pattern', expiresMs: null, fields: { source: 'mine' }, body: { text: 'x', metadata: {} }, vector, space: 'test-2' } as const; // prettier-ignore
  await store.put([own]);
  expect(await bank.count('acme')).toBe(1);
  expect(await search(0)).toHaveLength(1);
  // However many are nearer: no more are opened than needed to find ours.
  const asked: (readonly [number, boolean])[] = [];
  const counting = { ...store, nearest: (...[tenant, query]: Parameters<TestStore['nearest']>) => (asked.push([query.k, query.filter !== undefined]), store.nearest(tenant, query)) }; // prettier-ignore
  bank = createReasoningBank({ store: counting, services, trajectories });
  const nearer = Float32Array.from({ length: DIM }, (_, d) => (d === 0 ? 1 : 0));
  const crowd = async (count: number): Promise<void> => {
    await store.put(Array.from({ length: count }, () => ({ ...own, id: services.newId(), vector: nearer })));
    asked.length = 0;
    expect((await search(0)).map(({ pattern }) => pattern.support)).toEqual([4]);
  };
  expect(await search(0)).toHaveLength(1);
  expect(asked).toEqual([[3, false]]);
  await crowd(6);
  expect(asked).toEqual([[3, false], [19, false]]); // prettier-ignore
  await crowd(20);
  expect(asked).toEqual([[3, false], [19, false], [3, true]]); // prettier-ignore
  expect(await bank.search('other', { vector, space: 'test-2', k: 3 })).toEqual([]);
  expect(BANK_SOURCE).not.toBe('mine');
});

test('never compares vectors of two embedders (RB6)', async () => {
  for (let i = 0; i < 3; i++) await add(0, 1);
  for (let i = 0; i < 3; i++) await add(0, 1, { space: 'other-16' });
  expect(await bank.distil('acme')).toMatchObject({ numCreated: 2 });
  expect((await search(0)).map(({ pattern }) => pattern.support)).toEqual([3]);
});
