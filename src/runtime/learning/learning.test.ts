import { describe, expect, test, vi } from 'vitest';
import { createSonaHarness, openTinyModel } from '../../learning/sona/harness.contract.ts';
import type { SonaOptions } from '../../learning/sona/options.ts';
import { createLearningWork } from '../../learning/sona/work-methods.ts';
import { trajectoryFixture } from '../../learning/trajectories/harness.contract.ts';
import { createTestMemory } from '../../memory/operations/harness.contract.ts';
import { createLearning } from './learning.ts';
import { createRateLimit } from './rate-limit.ts';

/** Learning whose clock and plans the test has in its hands. */
async function open(options: SonaOptions = {}) {
  const { memory, services, store } = await createTestMemory();
  const { model } = createSonaHarness();
  const told: string[] = [];
  const planned: (() => void)[] = [];
  const work = createLearningWork(openTinyModel, () => performance.now(), services.sha256);
  const learning = createLearning({
    memory,
    work,
    endWork: async () => {},
    schedule(task) {
      planned.push(task);
      return () => void planned.splice(planned.indexOf(task), 1);
    },
    report: (message) => void told.push(message),
    probes: [],
    options: { rank: 2, numLayers: 2, learningRate: 0.02, fisherSamples: 4, minExamples: 4, ...options },
  });
  const detach = learning.attach({ ...model, serve: async () => {} });
  let number = 0;
  const requestOf = () => trajectoryFixture(++number, { embedding: null, space: null, query: `${number}?`, answer: 'a blue zog' }); // prettier-ignore
  const teach = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const one = requestOf();
      await learning.trajectories.add('acme', one);
      await learning.trajectories.rate('acme', { requestId: one.requestId, score: 1 }); // prettier-ignore
    }
  };
  /** Runs the scheduled work and waits for the next schedule. */
  const tick = async () => {
    planned.shift()!();
    for (let tries = 0; tries < 3000 && planned.length === 0; tries++) await new Promise((end) => setTimeout(end, 10));
  };
  return { learning, memory, store, services, told, planned, detach, requestOf, teach, tick, work };
}

describe('[LB8] loops that are due', () => {
  test('run by themselves for tenants that were seen, again and again, until it is closed', async () => {
    const { learning, planned, teach, tick, services } = await open({ backgroundEveryMs: 1000, deepEveryMs: 10_000 });
    await teach(40);
    await tick();
    expect(learning.sona.stats()).toMatchObject({ numBackground: 0, numDeep: 0 });
    await learning.prepare('acme', 'small');
    await tick();
    expect(learning.sona.stats()).toMatchObject({ numBackground: 1, numDeep: 0, numAccepted: 1 });
    await teach(20);
    services.timeMs += 1001;
    await tick();
    expect(learning.sona.stats()).toMatchObject({ numBackground: 1, numDeep: 1 });
    expect(planned).toHaveLength(1);
    await learning.close();
    expect(planned).toHaveLength(0);
  });

  test('one that fails is told of, and the next is planned all the same', async () => {
    const { learning, planned, told, teach, tick, work } = await open();
    await teach(40);
    await learning.prepare('acme', 'small');
    Object.assign(work, { train: async () => Promise.reject(new Error('out of memory')) });
    await tick();
    expect(told).toEqual(['learning failed: out of memory']);
    expect(planned).toHaveLength(1);
  });

  test('closing stops the one that runs instead of waiting for its end', async () => {
    const { learning, teach, planned, work } = await open({ backgroundLimitMs: 1e9, sliceMs: 1 });
    await teach(40);
    await learning.prepare('acme', 'small');
    const { train } = work;
    let numSlices = 0;
    // Never done, and with room for others in between: only its signal ends it.
    Object.assign(work, {
      async train(job: never) {
        numSlices++;
        await new Promise((end) => setTimeout(end, 1));
        return { ...(await train(job)), isDone: false };
      },
    });
    planned.shift()!();
    await vi.waitFor(() => expect(numSlices).toBeGreaterThan(0), { timeout: 300_000, interval: 5 });
    await learning.close();
    expect(learning.sona.stats()).toMatchObject({ numAccepted: 0, numRefused: 0 });
  });
});

describe('[LO10] requests on their way', () => {
  test('feedback waits for a request that is being kept', async () => {
    const { learning, requestOf, store } = await open();
    const one = requestOf();
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => (go = resolve));
    const { put } = store;
    Object.assign(store, { put: async (records: never) => (await gate, put.call(store, records)) });
    learning.observe('acme', one);
    const judged = learning.feedback('acme', { requestId: one.requestId, score: 1 });
    await new Promise((end) => setTimeout(end, 5));
    go();
    expect(await judged).toMatchObject({ verdict: 'success' });
    await learning.settle();
  });

  test('beyond a thousand that wait they are given up, and that is told once', async () => {
    const { learning, requestOf, told, store } = await open();
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => (go = resolve));
    const { put } = store;
    Object.assign(store, { put: async (records: never) => (await gate, put.call(store, records)) });
    for (let i = 0; i < 1003; i++) learning.observe('acme', requestOf());
    expect(told).toEqual(['1000 requests are queued for learning; more are dropped']);
    go();
    await learning.settle();
    expect(await store.count('acme', { kinds: ['trajectory'] })).toBe(1000);
  });

  test('what cannot be read is told, serves as in the file, and is tried again', async () => {
    const { learning, told, store } = await open();
    store.onCall = () => {
      throw new Error('no disk');
    };
    await learning.prepare('acme', 'small');
    expect(told).toEqual(['loading learned adapters failed: no disk']);
    store.onCall = () => {};
    let numReads = 0;
    store.onCall = () => void numReads++;
    await learning.prepare('acme', 'small');
    expect(numReads).toBeGreaterThan(0);
    expect(told).toHaveLength(1);
    numReads = 0;
    await learning.prepare('acme', 'small');
    expect(numReads).toBe(0);
  });
});

test('[LO3] a bucket fills again with time, never above its size, and a clock that goes back takes nothing', () => {
  let nowMs = 0;
  const limit = createRateLimit(() => nowMs, { burst: 2, perMinute: 60 });
  const isLetIn = (key = 'a'): boolean => {
    try {
      limit.take(key);
      return true;
    } catch {
      return false;
    }
  };
  expect([isLetIn(), isLetIn(), isLetIn(), isLetIn('b')]).toEqual([true, true, false, true]);
  nowMs = 500;
  expect(isLetIn()).toBe(false);
  nowMs = 1000;
  expect([isLetIn(), isLetIn()]).toEqual([true, false]);
  nowMs = 1e9;
  expect([isLetIn(), isLetIn(), isLetIn()]).toEqual([true, true, false]);
  nowMs = 0;
  expect(isLetIn()).toBe(false);
  nowMs = 1000;
  expect(isLetIn()).toBe(true);
});

test('[LO18] from the feedback to the weights the trajectory is read once', async () => {
  const { learning, requestOf, memory } = await open();
  const { store } = memory;
  learning.observe('acme', requestOf());
  await learning.settle();
  const [one] = await learning.trajectories.find('acme', { limit: 1 });
  await learning.prepare('acme', one!.model);
  let numReads = 0;
  const { get } = store;
  Object.assign(store, {
    async get(tenant: string, ids: readonly string[]) {
      const records = await get.call(store, tenant, ids);
      numReads += records.filter((record) => record?.kind === 'trajectory').length;
      return records;
    },
  });
  const { learned } = await learning.feedback('acme', { requestId: one!.requestId, score: 0 });
  expect((await learned).isApplied).toBe(true);
  expect(numReads).toBe(1);
});
