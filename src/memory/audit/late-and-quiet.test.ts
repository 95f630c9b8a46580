import type { QualityEstimate } from '../schemas/audit.ts';
import { describe, expect, test } from 'vitest';
import { allEdgesOf } from '../test-store.contract.ts';
import type { PutRecord } from '../types.ts';
import { createHarness, numbered, TENANT, auditInput } from './harness.contract.ts';

const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A foreground that is busy as long as it is told to be. */
function createBusy() {
  let turns: (() => void)[] = [];
  const busy = {
    isBusy: true,
    run: <T>(work: () => Promise<T>) => work(),
    isQuiet: () => !busy.isBusy,
    turn: () => (busy.isBusy ? new Promise<void>((resolve) => turns.push(resolve)) : Promise.resolve()),
    release() {
      const going = turns;
      turns = [];
      for (const go of going) go();
    },
    async next() {
      busy.release();
      await settle();
    },
  };
  return busy;
}

describe('[WL16] background work gives way', () => {
  test('entries are written in small pieces, one at each turn; links when it is quiet', async () => {
    const { open, store, runAll, delays } = createHarness();
    const foreground = createBusy();
    const log = await open({ foreground });
    const sizes: number[] = [];
    store.onCall = (operation, argument) =>
      void (operation === 'put' && sizes.push((argument as PutRecord[]).length - 2));
    for (const entry of numbered(5)) log.enqueue(TENANT, auditInput(entry));
    runAll();
    await settle();
    expect(sizes).toEqual([]);
    await foreground.next();
    expect(sizes).toEqual([2]);
    await foreground.next();
    await foreground.next();
    expect(sizes).toEqual([2, 2, 1]);
    expect(log.stats().numWritten).toBe(5);
    expect(await allEdgesOf(store, TENANT)).toEqual([]);
    runAll(); // it is looked again, and still not quiet
    await settle();
    expect(await allEdgesOf(store, TENANT)).toEqual([]);
    expect(delays()).toEqual([100]);
    foreground.isBusy = false;
    runAll();
    await settle();
    expect((await allEdgesOf(store, TENANT)).length).toBeGreaterThan(0);
    expect(delays()).toEqual([]);
  });

  test('of a queue that grows all the same a part goes at each turn', async () => {
    const { open, store, runAll } = createHarness();
    const foreground = createBusy();
    const log = await open({ foreground });
    const sizes: number[] = [];
    store.onCall = (operation, argument) =>
      void (operation === 'put' && sizes.push((argument as PutRecord[]).length - 2));
    for (const entry of numbered(640)) log.enqueue(TENANT, auditInput(entry));
    runAll();
    await settle();
    await foreground.next();
    expect(sizes).toEqual([10]);
  });

  test('entries that are nearly late are written at once, however busy it is', async () => {
    const { open, services, runAll } = createHarness();
    const log = await open({ foreground: createBusy() });
    for (const entry of numbered(5)) log.enqueue(TENANT, auditInput(entry));
    services.timeMs += 750;
    runAll();
    await settle();
    expect(log.stats()).toMatchObject({ numWritten: 5, numQueued: 0 });
  });

  test('with a slow store no entry waits for more than the write before it, in simulated time', async () => {
    const { open, store, services, runAll } = createHarness();
    const foreground = createBusy();
    const log = await open({ foreground });
    const takenMs = new Map<string, number>();
    const waits: number[] = [];
    let numArrived = 0;
    const arrive = (): void => {
      const query = `query ${++numArrived}`;
      takenMs.set(query, services.timeMs);
      log.enqueue(TENANT, auditInput({ query }));
    };
    store.onCall = (operation, argument) => {
      if (operation !== 'put') return;
      for (const { body } of argument as PutRecord[]) {
        const query = /"query":"(query \d+)"/.exec(JSON.stringify(body))?.[1] ?? '';
        if (takenMs.has(query)) waits.push(services.timeMs - takenMs.get(query)!);
      }
      // Each write takes 200 ms, in which ten requests come.
      const numComing = Math.min(10, 200 - numArrived);
      for (let i = 0; i < numComing; i++) {
        services.timeMs += 20;
        arrive();
      }
    };
    arrive();
    services.timeMs += 500;
    for (let i = 0; i < 100 && log.stats().numWritten < 200; i++) {
      runAll();
      await foreground.next();
      services.timeMs += 10; // a turn takes no longer
    }
    expect(log.stats()).toMatchObject({ numWritten: 200, numQueued: 0 });
    expect(waits).toHaveLength(200);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1000);
  });

  test('sync writes all entries at once and leaves links for later', async () => {
    const { open, store } = createHarness();
    const log = await open({ foreground: createBusy() });
    for (const entry of numbered(5)) log.enqueue(TENANT, auditInput(entry));
    await Promise.all([log.sync(), log.sync()]);
    expect(log.stats()).toMatchObject({ numWritten: 5, numQueued: 0 });
    expect(await allEdgesOf(store, TENANT)).toEqual([]);
    await log.flush();
    expect((await allEdgesOf(store, TENANT)).length).toBeGreaterThan(0);
  });

  test('flush does not wait for a turn that a drain waits for', async () => {
    const { open, runAll } = createHarness();
    const log = await open({ foreground: createBusy() });
    log.enqueue(TENANT, auditInput({ query: 'the only one' }));
    runAll();
    await settle();
    expect(log.stats()).toMatchObject({ numWritten: 0, numQueued: 1 });
    await log.flush();
    expect(log.stats()).toMatchObject({ numWritten: 1, numQueued: 0 });
  });

  test('flush and close do not wait for a turn', async () => {
    const { open, store } = createHarness();
    const foreground = createBusy();
    const log = await open({ foreground });
    for (const entry of numbered(5)) log.enqueue(TENANT, auditInput(entry));
    await log.flush();
    expect(log.stats()).toMatchObject({ numWritten: 5, numQueued: 0 });
    const numEdges = (await allEdgesOf(store, TENANT)).length;
    expect(numEdges).toBeGreaterThan(0);
    log.enqueue(TENANT, auditInput({ query: 'the last' }));
    await log.close();
    expect(log.stats()).toMatchObject({ numWritten: 6 });
    expect((await allEdgesOf(store, TENANT)).length).toBeGreaterThan(numEdges);
  });
});

describe('[WL17] a vector of the response that comes later', () => {
  const vectorsOf = async (log: Awaited<ReturnType<ReturnType<typeof createHarness>['open']>>) =>
    (await log.search(TENANT, { order: 'oldest' })).entries.map(({ entry }) => entry.responseEmbedding);

  test('is waited for by the writing, not by the entry; a failure leaves it out', async () => {
    const { open } = createHarness();
    const log = await open();
    const input = { ...auditInput(), responseEmbedding: null };
    let come = (_parts: { responseEmbedding: Float32Array; estimate: QualityEstimate }): void => {};
    expect(log.enqueue(TENANT, input, () => new Promise((resolve) => (come = resolve)))).toBe(true);
    expect(log.enqueue(TENANT, input, () => Promise.reject(new Error('the thread is gone')))).toBe(true);
    expect(log.enqueue(TENANT, input, () => Promise.resolve(null))).toBe(true);
    const flushing = log.flush();
    await settle();
    expect(log.stats().numWritten).toBe(0);
    const estimate = { quality: 0.6, parts: { coherence: 0.4 } };
    come({ responseEmbedding: Float32Array.of(1, 2), estimate });
    await flushing;
    expect(await vectorsOf(log)).toEqual([Float32Array.of(1, 2), null, null]);
    expect((await log.search(TENANT, { minEstimate: 0.5 })).entries.map(({ entry }) => entry.estimate)).toEqual([
      estimate,
    ]);
    expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 3 });
  });

  test('that never comes holds up nothing for long', async () => {
    const { open, runAll, delays } = createHarness();
    const log = await open();
    log.enqueue(TENANT, { ...auditInput(), responseEmbedding: null }, () => new Promise(() => {}));
    const flushing = log.flush();
    await settle();
    expect(delays()).toContain(750); // an entry is on disk within a second
    runAll();
    await flushing;
    expect(await vectorsOf(log)).toEqual([null]);
  });

  test('has its place in the queue from the start', async () => {
    const { open } = createHarness();
    const log = await open();
    const input = { ...auditInput(), responseEmbedding: null };
    log.enqueue(TENANT, input);
    const without = log.stats().queuedBytes;
    log.enqueue(TENANT, input, () => Promise.resolve(null));
    expect(log.stats().queuedBytes - without).toBe(without + 4 * input.queryEmbedding!.length);
    await log.flush();
  });
});
