import { describe, expect, test, vi } from 'vitest';
import { RuvLLMError } from '../../core/errors.ts';
import { withBuilders } from '../record-builders.ts';
import type { AuditInput } from '../schemas/audit.ts';
import { allEdgesOf } from '../test-store.contract.ts';
import type { PutRecord } from '../types.ts';
import { createHarness as createAnyHarness, numbered, TENANT, auditInput, writeAll } from './harness.contract.ts';

const queriesOf = (page: { entries: readonly { entry: { query: string } }[] }) =>
  page.entries.map(({ entry }) => entry.query);
const settle = () => new Promise((resolve) => setImmediate(resolve));

describe.each([
  { place: 'built in this thread', isRemote: false },
  { place: "built in the store's thread", isRemote: true },
])('entries $place', ({ isRemote }) => {
  const createHarness = () => createAnyHarness({ isRemote });

  describe('[WL1] entries are written in batches', () => {
    test('100 at once, without waiting for the second', async () => {
      const { open, store, delays, runAll } = createHarness();
      const log = await open();
      const sizes: number[] = [];
      store.onCall = (operation, argument) =>
        void (operation === 'put' && sizes.push((argument as PutRecord[]).length - 2));
      for (const entry of numbered(99)) log.enqueue(TENANT, auditInput(entry));
      expect(delays()).toEqual([500]);
      log.enqueue(TENANT, auditInput({ query: 'query 100' }));
      expect(delays()).toEqual([0]);
      for (const entry of numbered(130, 101)) log.enqueue(TENANT, auditInput(entry));
      runAll();
      await log.flush();
      expect(sizes).toEqual([100, 100, 30]);
      expect(log.stats()).toMatchObject({
        numEnqueued: 230,
        numWritten: 230,
        numQueued: 0,
        queuedBytes: 0,
        numDropped: 0,
      });
    });
    test('also after a flush that found nothing to write', async () => {
      const { open, runAll } = createHarness();
      const log = await open();
      await log.flush();
      log.enqueue(TENANT, auditInput({ query: 'by flush' }));
      await log.flush();
      log.enqueue(TENANT, auditInput({ query: 'by time' }));
      runAll();
      await settle();
      expect(log.stats()).toMatchObject({ numWritten: 2, numQueued: 0 });
      await log.flush();
      log.enqueue(TENANT, auditInput({ query: 'by close' }));
      await log.close();
      expect(log.stats()).toMatchObject({ numWritten: 3, numQueued: 0 });
    });
    test('a flush of nothing and a timer that finds nothing hold up no later entry', async () => {
      const { open, runAll } = createHarness();
      const log = await open();
      await log.flush();
      await writeAll(log, numbered(3)); // their timer is still waiting
      runAll();
      await settle();
      await writeAll(log, numbered(4, 4));
      expect(log.stats()).toMatchObject({ numWritten: 7, numQueued: 0 });
    });
    test('nothing of the store is touched by enqueue itself', async () => {
      const { open, store } = createHarness();
      const log = await open();
      const onCall = vi.fn();
      store.onCall = onCall;
      for (const entry of numbered(250)) log.enqueue(TENANT, auditInput(entry));
      expect(onCall).not.toHaveBeenCalled();
    });
  });

  describe('[WL2] a full queue', () => {
    test('drops and counts, and the next entry of the chain says so', async () => {
      const { open } = createHarness();
      const log = await open({ log: { queueEntries: 3 } });
      expect(numbered(5).map((entry) => log.enqueue(TENANT, auditInput(entry)))).toEqual([
        true,
        true,
        true,
        false,
        false,
      ]);
      expect(log.stats().numDropped).toBe(2);
      await log.flush();
      await writeAll(log, [{ query: 'later' }]);
      const links = [];
      for await (const { link } of log.export(TENANT)) links.push([link.sequence, link.numDroppedBefore]);
      expect(links).toEqual([
        [1, 0],
        [2, 0],
        [3, 0],
        [4, 2],
      ]);
      expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 4, numDropped: 2 });
    });
    test('is bounded in bytes too', async () => {
      const { open } = createHarness();
      const log = await open({ log: { queueBytes: 20_000 } });
      expect(log.enqueue(TENANT, auditInput({ query: 'x'.repeat(9000) }))).toBe(true);
      expect(log.enqueue(TENANT, auditInput({ query: 'x'.repeat(9000) }))).toBe(false);
      expect(log.enqueue(TENANT, auditInput({ query: 'x' }))).toBe(true);
    });
    test('waits where that was chosen, in order, and lets go when closed', async () => {
      const { open } = createHarness();
      const log = await open({ log: { queueEntries: 2, overflow: 'wait' } });
      const results = numbered(4).map((entry) => log.enqueue(TENANT, auditInput(entry)));
      expect(results.slice(0, 2)).toEqual([true, true]);
      expect(log.stats()).toMatchObject({ numWaiting: 2, numDropped: 0 });
      await log.flush();
      expect(await Promise.all(results)).toEqual([true, true, true, true]);
      expect(queriesOf(await log.search(TENANT, { order: 'oldest' }))).toEqual([
        'query 1',
        'query 2',
        'query 3',
        'query 4',
      ]);
    });
  });

  describe('[WL3] enqueue never throws', () => {
    const hostile: readonly [string, unknown][] = [
      ['null', null],
      ['an empty object', {}],
      ['a getter that throws', Object.defineProperty(auditInput(), 'query', { get: () => { throw new Error('boo'); } })], // prettier-ignore
      ['a proxy', new Proxy({}, { get: () => { throw new Error('boo'); } })], // prettier-ignore
      ['an unknown key', { ...auditInput(), extra: 1 }],
      ['a wrong id', auditInput({ requestId: 'no' })],
      ['text that is none', auditInput({ query: { length: 3 } as never })],
    ];
    test.each(hostile)('%s is refused and counted; the others of its batch are written', async (_, entry) => {
      const { open } = createHarness();
      const log = await open();
      log.enqueue(TENANT, auditInput({ query: 'before' }));
      log.enqueue(TENANT, entry as AuditInput);
      await writeAll(log, [{ query: 'after' }]);
      await writeAll(log, [{ query: 'end' }]);
      expect(queriesOf(await log.search(TENANT, { order: 'oldest' }))).toEqual(['before', 'after', 'end']);
      expect(log.stats().numRefused).toBe(1);
      expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numDropped: 1 });
    });
    test('repairs invalid parts and names them in the entry', async () => {
      const { open } = createHarness();
      const log = await open();
      const latency = { ...auditInput().latency, totalMs: NaN, ttftMs: -1 };
      await writeAll(log, [
        { query: 'x'.repeat(70_000), quality: NaN, latency, queryEmbedding: Float32Array.of(NaN, 1), model: 'a\udc00' },
        {
          queryEmbedding: Float32Array.of(0, 0),
          responseEmbedding: null,
          contextDocIds: ['x'],
          error: { code: 'e', message: '\ud800', isRetryable: false },
        },
      ]);
      const { entries } = await log.search(TENANT, { order: 'oldest' });
      const [first, second] = entries.map(({ entry }) => entry);
      expect(first).toMatchObject({ quality: null, queryEmbedding: null, space: null, model: 'a\ufffd', numCut: 4464 });
      expect(first!.query.length).toBe(65536);
      expect(first!.latency).toMatchObject({ totalMs: 0, ttftMs: 0, generationMs: 120 });
      expect(first!.repairs).toEqual(['totalMs', 'ttftMs', 'quality', 'queryEmbedding', 'query', 'model']);
      expect(second).toMatchObject({
        queryEmbedding: null,
        contextDocIds: [],
        repairs: ['contextDocIds', 'queryEmbedding', 'error.message'],
      });
      expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 2 });
    });
    test('a vector the store refuses costs the vector, not the entry, and nothing of the others', async () => {
      const { open, store } = createHarness();
      const log = await open();
      store.onCall = (operation, argument) => {
        if (operation === 'put' && (argument as PutRecord[]).some(({ vector }) => vector?.length === 3)) {
          throw new RuvLLMError('invalid_option', 'vectors of this space have 2 values, not 3');
        }
      };
      await writeAll(log, [{ query: 'a' }, { query: 'b', queryEmbedding: Float32Array.of(1, 2, 3) }, { query: 'c' }]);
      const { entries } = await log.search(TENANT, { order: 'oldest' });
      expect(entries.map(({ entry }) => [entry.query, entry.queryEmbedding?.length ?? null])).toEqual([['a', 2], ['b', null], ['c', 2]]); // prettier-ignore
      expect(entries[1]!.entry.repairs).toEqual(['queryEmbedding refused']);
      expect(await log.verify(TENANT)).toMatchObject({ isIntact: true });
    });
  });

  describe('[WL4] a store that fails', () => {
    test('keeps the order, retries with growing delays, and loses nothing when it recovers', async () => {
      const { open, store, delays, runAll } = createHarness();
      const log = await open();
      store.onCall = (operation) => {
        if (operation === 'put') throw new RuvLLMError('io', 'disk gone');
      };
      for (const entry of numbered(3)) log.enqueue(TENANT, auditInput(entry));
      await expect(log.flush()).rejects.toThrow('disk gone');
      // The timer of the first entry is still there; from then on the waits grow.
      expect(delays()).toEqual([500]);
      runAll();
      await settle();
      expect(delays()).toEqual([4000]);
      expect(log.stats()).toMatchObject({ numQueued: 3, numWritten: 0, lastError: 'disk gone' });
      store.onCall = () => {};
      runAll();
      await settle();
      expect(log.stats()).toMatchObject({ numQueued: 0, numWritten: 3 });
      expect(queriesOf(await log.search(TENANT, { order: 'oldest' }))).toEqual(['query 1', 'query 2', 'query 3']);
    });
    test('for one tenant does not hold up another', async () => {
      const { open, store } = createHarness();
      const log = await open();
      store.onCall = (operation, argument) => {
        if (operation === 'put' && (argument as PutRecord[])[0]!.tenant === TENANT)
          throw new RuvLLMError('io', 'no key');
      };
      log.enqueue(TENANT, auditInput());
      log.enqueue('other', auditInput({ query: 'mine' }));
      await expect(log.flush()).rejects.toThrow('no key');
      await expect(log.flush()).rejects.toThrow('no key');
      expect(queriesOf(await log.search('other', {}))).toEqual(['mine']);
    });
    test('does not repeat a write that succeeded', async () => {
      const { open, store } = createHarness();
      const log = await open();
      const put = store.put.bind(store);
      let hasFailed = false;
      store.put = async (records) => {
        const result = await put(records);
        if (!hasFailed && records.length > 1) {
          hasFailed = true;
          throw new RuvLLMError('io', 'connection lost');
        }
        return result;
      };
      for (const entry of numbered(2)) log.enqueue(TENANT, auditInput(entry));
      await expect(log.flush()).rejects.toThrow('connection lost');
      await writeAll(log, numbered(2, 3));
      expect(queriesOf(await log.search(TENANT, { order: 'oldest' }))).toEqual([
        'query 1',
        'query 2',
        'query 3',
        'query 4',
      ]);
      expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 4 });
    });
  });

  describe('[WL5] reports entries lost in a crash', () => {
    test('the next run reports it once, and verify says after which entry', async () => {
      const { open, services } = createHarness();
      const crashed = await open();
      await writeAll(crashed, numbered(3));
      services.timeMs += 500;
      for (const entry of numbered(4, 4)) crashed.enqueue(TENANT, auditInput(entry));
      services.timeMs += 10_000;
      const next = await open();
      expect(next.stats().gaps).toEqual([
        { runId: expect.any(String), fromMs: Date.UTC(2026, 0, 1), foundMs: services.timeMs, numKnownLost: 0 },
      ]);
      await writeAll(next, numbered(2, 8));
      const report = await next.verify(TENANT);
      expect(report).toMatchObject({ isIntact: true, numChecked: 5 });
      expect(report.gaps).toEqual([{ ...next.stats().gaps[0], afterSequence: 3 }]);
      await next.close();
      const third = await open();
      expect(third.stats().gaps).toEqual([]);
      expect((await third.verify(TENANT)).gaps.length).toBe(1);
    });
    test('with the number that was in the queue behind the last batch', async () => {
      const { open, store } = createHarness();
      const crashed = await open({ log: { batchEntries: 2 } });
      let numPuts = 0;
      store.onCall = (operation) => {
        if (operation === 'put' && ++numPuts > 2) throw new RuvLLMError('io', 'killed');
      };
      for (const entry of numbered(7)) crashed.enqueue(TENANT, auditInput(entry));
      await expect(crashed.flush()).rejects.toThrow('killed');
      store.onCall = () => {};
      const next = await open();
      expect(next.stats().gaps).toMatchObject([{ numKnownLost: 3 }]);
      expect(queriesOf(await next.search(TENANT, { order: 'oldest' }))).toEqual(numbered(4).map(({ query }) => query));
    });
    test('a run that closed lost nothing', async () => {
      const { open } = createHarness();
      const log = await open();
      log.enqueue(TENANT, auditInput());
      await log.close();
      const next = await open();
      expect(next.stats().gaps).toEqual([]);
      expect((await next.search(TENANT, {})).entries.length).toBe(1);
      expect(log.enqueue(TENANT, auditInput())).toBe(false);
    });
    test('a run that could not write at its end is a gap', async () => {
      const { open, store } = createHarness();
      const log = await open();
      log.enqueue(TENANT, auditInput());
      store.onCall = () => {
        throw new RuvLLMError('disk_full', 'full');
      };
      await expect(log.close()).rejects.toThrow('full');
      store.onCall = () => {};
      expect((await open()).stats().gaps.length).toBe(1);
    });
  });

  describe('[WL6] two logs on one store', () => {
    test('make one chain between them', async () => {
      const { open, store } = createHarness();
      store.onCall = () => new Promise((resolve) => setImmediate(resolve));
      const logs = [await open({ log: { leaseMs: 60_000 } }), await open({ log: { leaseMs: 60_000 } })];
      expect(logs[1]!.stats().gaps).toEqual([]);
      for (let round = 0; round < 5; round++) {
        await Promise.all(logs.map((log, index) => writeAll(log, numbered(3, 100 * index + 10 * round))));
      }
      expect(await logs[0]!.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 30, gaps: [] });
      const seen = queriesOf(await logs[1]!.search(TENANT, { limit: 100 }));
      expect(new Set(seen).size).toBe(30);
    });
    test('one that is silent for longer than the lease is lost; one that beats is not', async () => {
      const { open, services, runAll } = createHarness();
      const options = { log: { leaseMs: 30_000 } };
      await open(options);
      services.timeMs += 20_000;
      runAll(); // heartbeat
      await settle();
      services.timeMs += 20_000;
      expect((await open(options)).stats().gaps).toEqual([]);
      services.timeMs += 40_000;
      expect((await open(options)).stats().gaps.length).toBe(2);
    });
  });

  describe('[WL7] a clock that goes back', () => {
    test('does not put an entry before the one it follows', async () => {
      const { open, services } = createHarness();
      const log = await open();
      await writeAll(log, [{ query: 'first' }]);
      services.timeMs -= 86_400_000;
      await writeAll(log, [{ query: 'second', timestampMs: services.timeMs }]);
      const { entries } = await log.search(TENANT, { order: 'oldest' });
      expect(entries.map(({ entry, createdMs }) => [entry.query, createdMs])).toEqual([
        ['first', Date.UTC(2026, 0, 1)],
        ['second', Date.UTC(2026, 0, 1)],
      ]);
      expect(entries[1]!.entry.timestampMs).toBe(Date.UTC(2025, 11, 31));
      expect(await log.verify(TENANT)).toMatchObject({ isIntact: true });
    });
  });

  describe('[WL8] entries stand in the graph', () => {
    test('session to request, and request to the similar ones before it', async () => {
      const { open, store, services } = createHarness();
      const { sessionRecordId } = await import('../sessions/sessions.ts');
      const sessionId = sessionRecordId(services.sha256, TENANT, 'chat-1');
      await store.put([
        {
          id: sessionId,
          tenant: TENANT,
          kind: 'session',
          expiresMs: null,
          fields: {},
          body: null,
          vector: null,
          space: null,
        },
      ]);
      const log = await open({ log: { numSimilar: 2, minSimilarity: 0.9 } });
      await writeAll(log, [
        { query: 'a', queryEmbedding: Float32Array.of(1, 0) },
        { query: 'b', queryEmbedding: Float32Array.of(0, 1), sessionId: 'unknown' },
        { query: 'c', queryEmbedding: Float32Array.of(0.99, 0.1), sessionId: null },
      ]);
      const { entries } = await log.search(TENANT, { order: 'oldest' });
      const edges = (await allEdgesOf(store)).map(({ from, to, relation }) => [from, relation, to]);
      expect(edges).toEqual([
        [sessionId, 'session', entries[0]!.id],
        [entries[2]!.id, 'same-topic', entries[0]!.id],
      ]);
    });
    test('and an edge that fails costs no entry', async () => {
      const { open, store } = createHarness();
      const log = await open();
      store.onCall = (operation) => {
        if (operation === 'nearest') throw new RuvLLMError('io', 'index gone');
      };
      await writeAll(log, numbered(2));
      expect(log.stats()).toMatchObject({ numWritten: 2, numLinksFailed: 2 });
    });
  });

  test('[WL9] tenants have chains of their own', async () => {
    const { open } = createHarness();
    const log = await open();
    await writeAll(log, numbered(3), 'a');
    await writeAll(log, numbered(2), 'b');
    expect((await log.verify('a')).head.sequence).toBe(3);
    expect((await log.verify('b')).head.sequence).toBe(2);
    expect(await log.verify('unknown')).toMatchObject({ isIntact: true, numChecked: 0 });
  });
});

test("the store's thread gets a batch in one call, and this thread builds nothing", async () => {
  const { open, store, services } = createAnyHarness();
  const { putBuilt, ...rest } = withBuilders(store, services.sha256);
  const calls: string[] = [];
  const log = await open({
    store: {
      ...rest,
      async put(records) {
        calls.push('put');
        return store.put(records);
      },
      async putBuilt(name, input) {
        calls.push(`${name}: ${(input as { readonly items: readonly unknown[] }).items.length}`);
        return putBuilt!(name, input);
      },
    },
  });
  calls.length = 0; // of the run's mark
  await writeAll(log, numbered(5));
  expect(calls).toEqual(['entries: 5']);
  expect(await log.verify(TENANT)).toMatchObject({ isIntact: true, numChecked: 5 });
});
