import { beforeEach, describe, expect, test } from 'vitest';
import {
  createTestServices,
  createTestStore,
  type TestServices,
  type TestStore,
} from '../../memory/test-store.contract.ts';
import { trajectoryFixture } from './harness.contract.ts';
import { createTrajectories, type Trajectories } from './trajectories.ts';

let services: TestServices;
let store: TestStore;
let trajectories: Trajectories;
const one = trajectoryFixture(1);
const praise = { source: 'api', score: 1, correction: null, comment: null } as const;

beforeEach(() => {
  services = createTestServices();
  store = createTestStore(services);
  trajectories = createTrajectories(store, services);
});

test('a trajectory is read as it was written (TJ1)', async () => {
  const retrieved = [{ id: one.requestId, isUsed: null }];
  await trajectories.add('acme', { ...one, retrieved });
  expect(await trajectories.get('acme', one.requestId)).toEqual({
    ...one,
    retrieved,
    correction: null,
    verdict: 'unknown',
    feedback: [],
    isDistilled: false,
    expiresMs: one.createdMs + 30 * 86_400_000,
  });
});

test('a trajectory with parameters of older versions is readable (TJ1)', async () => {
  await trajectories.add('acme', one);
  const [record] = (await store.find('acme', { kinds: ['trajectory'], order: 'newest', limit: 1 })).records;
  const unused = { temperature: null, topP: null, contextSize: null, adapterHash: null };
  const body = { ...(record!.body as object), parameters: { ...unused, propensity: 0.5 } };
  await store.put([{ ...record!, body, ifVersion: record!.version }]);
  expect((await trajectories.get('acme', one.requestId))!.parameters).toEqual({
    propensity: 0.5,
    temperature: null,
    topP: null,
  });
});

describe('feedback (TJ2)', () => {
  beforeEach(() => trajectories.add('acme', one));

  test.each([
    [{ score: 0.9 }, 0.9, 'success'],
    [{ score: 0.5 }, 0.5, 'partial'],
    [{ score: 0 }, 0, 'failure'],
    [{ correction: 'At the bank.' }, 0, 'failure'],
    [{ comment: 'hm' }, null, 'unknown'],
  ] as const)('%o is quality %s: %s', async (given, quality, verdict) => {
    const rated = await trajectories.rate('acme', one.requestId, { ...praise, score: null, ...given });
    expect(rated).toMatchObject({ quality, verdict });
    expect(await trajectories.get('acme', one.requestId)).toEqual(rated);
  });

  test('the last rating counts, and sixteen are kept', async () => {
    for (let i = 0; i < 20; i++) await trajectories.rate('acme', one.requestId, { ...praise, score: i / 20 });
    const rated = await trajectories.get('acme', one.requestId);
    expect(rated!.quality).toBe(0.95);
    expect(rated!.feedback.map(({ score }) => score)).toEqual(Array.from({ length: 16 }, (_, i) => (i + 4) / 20));
  });

  test('marks a request for distillation again only if its lesson changed', async () => {
    await trajectories.rate('acme', one.requestId, praise);
    await trajectories.markDistilled('acme', [one.requestId]);
    expect((await trajectories.rate('acme', one.requestId, praise)).isDistilled).toBe(true);
    expect((await trajectories.rate('acme', one.requestId, { ...praise, score: 0 })).isDistilled).toBe(false);
  });

  test('is refused for an unknown request and for one of another tenant', async () => {
    const unknown = trajectories.rate('acme', trajectoryFixture(2).requestId, praise);
    await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
    await expect(trajectories.rate('other', one.requestId, praise)).rejects.toMatchObject({ code: 'not_found' });
    expect((await trajectories.get('acme', one.requestId))!.feedback).toEqual([]);
  });

  test.each([
    { score: 1.01 },
    { score: -0.1 },
    { score: Number.NaN },
    { score: Infinity },
    { score: null },
    { score: null, correction: 'x'.repeat(65_537) },
  ])('%o is refused', async (given) => {
    // prettier-ignore
    await expect(trajectories.rate('acme', one.requestId, { ...praise, ...given })).rejects.toMatchObject({
      code: 'invalid_option',
    });
    expect((await trajectories.get('acme', one.requestId))!.feedback).toEqual([]);
  });

  test('loses nothing when two ratings come at once', async () => {
    await Promise.all([0.1, 0.9].map((score) => trajectories.rate('acme', one.requestId, { ...praise, score })));
    expect((await trajectories.get('acme', one.requestId))!.feedback).toHaveLength(2);
  });
});

test('removes all requests of a session, user or model, and no others (TJ3)', async () => {
  for (let n = 1; n <= 1200; n++) {
    await trajectories.add(
      'acme',
      trajectoryFixture(n, { userId: n % 2 === 0 ? 'eve' : 'bob', embedding: null, space: null }),
    );
  }
  const gone = await trajectories.remove('acme', [{ field: 'userId', is: '=', value: 'eve' }]);
  expect(gone).toHaveLength(600);
  const left = await trajectories.find('acme', { limit: 5000 });
  expect(left).toHaveLength(600);
  expect(new Set(left.map(({ userId }) => userId))).toEqual(new Set(['bob']));
});

test('limit, order and conditions hold over pages (TJ3)', async () => {
  for (let n = 1; n <= 700; n++)
    await trajectories.add('acme', trajectoryFixture(n, { model: n > 650 ? 'large' : 'small' }));
  const oldest = await trajectories.find('acme', { order: 'oldest', limit: 600 });
  expect(oldest.map(({ createdMs }) => createdMs - Date.UTC(2026, 0, 1))).toEqual(
    Array.from({ length: 600 }, (_, i) => i + 1),
  );
  const large = await trajectories.find('acme', {
    conditions: [{ field: 'model', is: '=', value: 'large' }],
    limit: 600,
  });
  expect(large).toHaveLength(50);
});

test('feedback marks the named sources as used and the others as unused (TJ4)', async () => {
  const [a, b, c] = [1, 2, 3].map((n) => trajectoryFixture(n).requestId) as [string, string, string];
  const one = trajectoryFixture(9, { retrieved: [{ id: a, isUsed: true }, { id: b, isUsed: null }] }); // prettier-ignore
  await trajectories.add('acme', one);
  const named = { source: 'api', score: null, correction: null, comment: null, usedSources: [b] } as const;
  expect(await trajectories.rate('acme', one.requestId, named)).toMatchObject({
    retrieved: [{ id: a, isUsed: false }, { id: b, isUsed: true }], // prettier-ignore
    verdict: 'unknown',
  });
  await expect(trajectories.rate('acme', one.requestId, { ...named, usedSources: [c] })).rejects.toThrow(
    'none of the 2',
  );
  expect(await trajectories.rate('acme', one.requestId, { ...named, usedSources: [] })).toMatchObject({
    retrieved: [{ id: a, isUsed: false }, { id: b, isUsed: false }], // prettier-ignore
  });
});
