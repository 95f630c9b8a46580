import { expect, test } from 'vitest';
import { engineRequest } from '../../test/support/engine-request.ts';
import { checkPageRanges } from '../../test/support/page-ranges.ts';
import { createRandom } from '../core/random.ts';
import {
  createToyModel,
  createToySampler,
  toyContinuation,
  type ToyModelOptions,
} from '../../test/support/toy-model.ts';
import { createEngine, type Engine, type EngineOptions } from './engine.ts';
import type { EngineEvent, EngineRequest } from './types.ts';

const clock = { nowMs: 0 };

function setUp(model: ToyModelOptions = {}, options: Partial<EngineOptions> = {}): Engine {
  clock.nowMs = 0;
  return createEngine(createToyModel(model), { maxContext: 64, now: () => clock.nowMs, ...options });
}

function request(id: number, more: Partial<EngineRequest> = {}): EngineRequest {
  return engineRequest({ id, promptIds: [id % 61, 1, 2], maxTokens: 4, sampler: createToySampler(id), ...more });
}

async function runToEnd(engine: Engine): Promise<EngineEvent[]> {
  const events: EngineEvent[] = [];
  while (engine.hasWork) {
    events.push(...(await engine.step()));
    engine.checkIntegrity();
  }
  return events;
}

/** No sequence, no page in use, and after `clear` no page at all. */
function expectRest(engine: Engine): void {
  engine.checkIntegrity();
  expect(engine.stats()).toMatchObject({ numRunning: 0, numWaiting: 0, numFreePages: engine.stats().numPages });
  expect(engine.stats().cache.numIdlePages).toBe(engine.stats().cache.numCachedPages);
  engine.cache.clear();
  expect(engine.stats().cache).toMatchObject({ usedBytes: 0, numCachedPages: 0 });
}

test('[E21] a full queue rejects with both numbers and accepts again once it has space', async () => {
  const engine = setUp({}, { maxWaiting: 2 });
  engine.add(request(0));
  engine.add(request(1));
  const refused = expect.objectContaining({
    code: 'overloaded',
    message: '2 requests are waiting; the limit is 2',
    isRetryable: true,
    data: { numWaiting: 2, maxWaiting: 2 },
  });
  expect(() => engine.add(request(2))).toThrow(refused);
  await engine.step();
  engine.add(request(2)); // a rejected request does not take its id
  expect(engine.stats().numRefused).toBe(1);
  await runToEnd(engine);
  expectRest(engine);
});

test('[E21] rejects a tenant over its limit, but not others', () => {
  const engine = setUp({}, { maxRequestsPerTenant: 1 });
  engine.add(request(0));
  expect(() => engine.add(request(1))).toThrow(
    expect.objectContaining({
      code: 'overloaded',
      message: 'this tenant has 1 active requests; the limit is 1',
      isRetryable: true,
      data: { numRequests: 1, maxRequestsPerTenant: 1 },
    }),
  );
  engine.add(request(1, { tenant: 'other' }));
  engine.abort(0);
  engine.add(request(2));
});

test('[E22] a request past its timeout fails, waiting or running, and frees its pages', async () => {
  const engine = setUp({ limits: { maxSequences: 1 } });
  const survivor = { promptIds: [9], maxTokens: 3, seed: 5 };
  engine.add(request(0, { timeoutMs: 100, maxTokens: 50 }));
  engine.add(request(1, { timeoutMs: 60 }));
  engine.add(request(2, { ...survivor, sampler: createToySampler(5), timeoutMs: 1000 }));
  await engine.step();
  clock.nowMs = 59;
  expect(await engine.step()).toMatchObject([{ type: 'token', id: 0 }]);
  clock.nowMs = 60;
  const [expired] = await engine.step();
  expect(expired).toEqual({
    type: 'failed',
    id: 1,
    error: {
      code: 'deadline_exceeded',
      message: 'timed out after 60 ms with 0 tokens generated; the limit is 60 ms',
      isRetryable: true,
      data: { elapsedMs: 60, timeoutMs: 60, generatedTokens: 0 },
    },
  });
  clock.nowMs = 101;
  const events = await engine.step();
  expect(events[0]).toMatchObject({ type: 'failed', id: 0, error: { data: { elapsedMs: 101, generatedTokens: 3 } } });
  events.push(...(await runToEnd(engine)));
  const tokens = events.flatMap((event) => (event.type === 'token' && event.id === 2 ? [event.token.tokenId] : []));
  expect(tokens).toEqual(toyContinuation(survivor.promptIds, survivor));
  expect(engine.stats().numExpired).toBe(2);
  expectRest(engine);
});

test('[E23] events report the cached tokens of the prompt', async () => {
  const engine = setUp();
  const promptIds = Array.from({ length: 40 }, (_, i) => i);
  const cachedTokens: number[] = [];
  for (const [id, prompt] of [promptIds, promptIds, [...promptIds.slice(0, 20), 60, 60]].entries()) {
    engine.add(request(id, { promptIds: prompt }));
    for (const event of await runToEnd(engine)) if (event.type === 'finished') cachedTokens.push(event.cachedTokens);
  }
  // All but the last token; then a whole page and the 4 equal tokens of the next.
  expect(cachedTokens).toEqual([0, 39, 20]);
  expect(engine.stats().cache).toMatchObject({ numLookups: 3, numMisses: 1, numHits: 2, savedTokens: 59 });
});

test('[E10] 10,000 aborts in any order leave nothing behind', async () => {
  const engine = setUp({}, { maxWaiting: 20_000 });
  const random = createRandom(3);
  const ids = Array.from({ length: 10_000 }, (_, id) => id);
  for (const id of ids) engine.add(request(id, { maxTokens: 50, tenant: `${id % 100}`, cachePrefix: id % 3 > 0 }));
  await engine.step();
  expect(engine.stats().numRunning).toBe(8);
  for (let left = ids.length; left > 0; left--) {
    const at = Math.floor(random.next() * left);
    expect(engine.abort(ids[at]!)).toBe(true);
    ids[at] = ids[left - 1]!;
    if (left % 1000 === 0) await engine.step();
  }
  expect(engine.hasWork).toBe(false);
  expect(await engine.step()).toEqual([]);
  expectRest(engine);
  engine.add(request(10_000));
  expect(await runToEnd(engine)).toHaveLength(5);
});

test('[E13] finished sequences hold no pages, whether or not their events are read', async () => {
  const engine = setUp({ limits: { numPages: 4 } }); // one such sequence fills them all
  const unread: EngineEvent[][] = [];
  for (let id = 0; id < 5; id++) {
    engine.add(request(id, { promptIds: Array.from({ length: 50 }, () => id), maxTokens: 14 }));
    while (engine.hasWork) unread.push(await engine.step());
    expect(engine.stats()).toMatchObject({ numFreePages: 4, numPreemptions: 0 });
  }
  expectRest(engine);
});

test('[E9] rejects a model without pages', () => {
  for (const limits of [{ numPages: 0 }, { numPages: -1 }, { numPages: 1.5 }]) {
    expect(() => setUp({ limits })).toThrow();
  }
  const model = createToyModel();
  for (const pages of [{ pageTokens: 0 }, { pageBytes: 0 }]) {
    expect(() =>
      createEngine({ ...model, pages: { ...model.pages, ...pages } }, { maxContext: 9, now: () => 0 }),
    ).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  }
});

test('[E24] evicts idle pages for a reservation', async () => {
  const engine = setUp({ limits: { numPages: 32 } });
  for (let id = 0; id < 8; id++) {
    engine.add(request(id, { promptIds: Array.from({ length: 60 }, () => id) }));
    await runToEnd(engine);
  }
  const { usedBytes, budgetBytes } = engine.stats().cache;
  const sizeBytes = budgetBytes / 2;
  expect(usedBytes).toBeGreaterThan(budgetBytes - sizeBytes);
  expect(engine.cache.canReserve(sizeBytes)).toBe(false); // not without evicting
  const reservation = engine.cache.reserve(sizeBytes);
  expect(engine.stats().cache.adapterBytes).toBe(sizeBytes);
  engine.checkIntegrity();
  engine.add(request(8, { promptIds: Array.from({ length: 60 }, () => 8) }));
  await runToEnd(engine);
  engine.cache.unreserve(reservation);
  expectRest(engine);
});

for (const packed of [false, true]) {
  test(`[E24] a reservation leaves memory for the longest request; packed pages: ${packed}`, async () => {
    const limits = { numPages: 32, maxBatchTokens: 16 };
    const engine = setUp({ limits, packed }, { maxContext: 256, tailTokens: 16 });
    const { budgetBytes } = engine.stats().cache;
    const slabBytes = budgetBytes / 16;
    for (;;) {
      try {
        engine.cache.reserve(slabBytes);
      } catch (error) {
        const { adapterBytes } = engine.stats().cache;
        expect(error).toMatchObject({
          code: 'out_of_memory',
          message: `${slabBytes} bytes for adapter weights do not fit: ${adapterBytes} bytes are reserved already, and the budget of ${budgetBytes} must also hold a sequence of 256 tokens`,
          data: { neededBytes: slabBytes, reservedBytes: adapterBytes, budgetBytes, maxTokens: 256 },
        });
        break;
      }
    }
    expect(engine.stats().cache.adapterBytes).toBeGreaterThan(budgetBytes / 4);
    expect(engine.cache.canReserve(slabBytes)).toBe(false);
    const ask = { promptIds: Array.from({ length: 100 }, (_, i) => i % 61), maxTokens: 156, seed: 2 };
    engine.add(request(0, { ...ask, sampler: createToySampler(ask.seed) }));
    const events = await runToEnd(engine);
    const tokens = events.flatMap((event) => (event.type === 'token' ? [event.token.tokenId] : []));
    expect(tokens).toEqual(toyContinuation(ask.promptIds, ask));
  });
}

test('[E24] does not reserve memory of running sequences, and the error says how much is in use', async () => {
  const engine = setUp({ limits: { numPages: 8 } });
  for (const id of [0, 1]) engine.add(request(id, { promptIds: Array.from({ length: 40 }, () => id), maxTokens: 9 }));
  await engine.step();
  const { budgetBytes } = engine.stats().cache;
  expect(() => engine.cache.reserve(budgetBytes / 2)).toThrow(
    expect.objectContaining({
      code: 'out_of_memory',
      isRetryable: true,
      data: { neededBytes: 512, usedBytes: 768, budgetBytes },
    }),
  );
});

test('rejects cache access during a step', async () => {
  const engine = setUp({ beforeForward: () => expect(() => engine.cache).toThrow('only between two steps') });
  engine.add(request(0));
  expect(await runToEnd(engine)).toHaveLength(5);
});

test('[E14] the bytes of all pages of a step stay within the budget', async () => {
  const numPages = 48;
  let peakBytes = 0;
  const model = createToyModel({
    packed: true,
    limits: { numPages, maxBatchTokens: 64 },
    beforeForward: (batch) => void (peakBytes = Math.max(peakBytes, checkPageRanges(batch, model.pages, numPages))),
  });
  const engine = createEngine(model, { maxContext: 400, now: () => 0, tailTokens: 32 });
  for (let id = 0; id < 12; id++) {
    engine.add(request(id, { promptIds: Array.from({ length: 200 }, (_, i) => (i * id) % 61), maxTokens: 100 }));
  }
  await runToEnd(engine);
  const { budgetBytes, peakBytes: claimedBytes, numPacked } = engine.stats().cache;
  expect(budgetBytes).toBe(numPages * model.pages.pageBytes);
  expect(peakBytes).toBeGreaterThan(0.6 * budgetBytes);
  expect(peakBytes).toBeLessThanOrEqual(claimedBytes);
  expect(numPacked).toBeGreaterThan(50);
});

test('[E11] never shares pages that produced bad logits', async () => {
  const engine = setUp();
  const promptIds = Array.from({ length: 40 }, (_, i) => i);
  const sampler = { sample: () => { throw new Error('NaN'); } }; // prettier-ignore
  engine.add(request(0, { promptIds, sampler }));
  expect(await runToEnd(engine)).toMatchObject([{ type: 'failed', id: 0 }]);
  engine.add(request(1, { promptIds }));
  expect((await runToEnd(engine))[0]).toMatchObject({ cachedTokens: 0 });
});

test('[E17] a returning tenant has no credit for its idle time', async () => {
  const engine = setUp({ limits: { maxSequences: 1 } });
  engine.add(request(0, { tenant: 'a', maxTokens: 30 }));
  for (let i = 0; i < 29; i++) await engine.step();
  for (const [id, tenant] of [[1, 'b'], [2, 'a'], [3, 'b']] as const) engine.add(request(id, { tenant, maxTokens: 2 })); // prettier-ignore
  const ends = (await runToEnd(engine)).flatMap((event) => (event.type === 'finished' ? [event.id] : []));
  expect(ends).toEqual([0, 1, 2, 3]);
});

test('counts free pages in bytes: a sequence may have more packed pages than the budget has float pages', async () => {
  const engine = setUp(
    { limits: { numPages: 40, maxBatchTokens: 16 }, packed: true },
    { maxContext: 1024, tailTokens: 16 },
  );
  const numTokens = engine.maxContext - 8;
  expect(numTokens).toBeGreaterThan(40 * 16);
  engine.add(request(0, { promptIds: Array.from({ length: numTokens }, () => 5), maxTokens: 8 }));
  const free: number[] = [];
  while (engine.hasWork) {
    await engine.step();
    free.push(engine.stats().numFreePages);
  }
  expect(Math.min(...free)).toBeGreaterThanOrEqual(0);
  expectRest(engine);
});

test('[E9] rejects an invalid priority or timeout, and changes nothing', () => {
  const engine = setUp();
  for (const priority of [-11, 11, 0.5, Number.NaN]) {
    const refused = expect.objectContaining({
      code: 'invalid_option',
      message: `priority must be -10 to 10, got ${priority}`,
    });
    expect(() => engine.add(request(0, { priority }))).toThrow(refused);
  }
  for (const timeoutMs of [-1, Number.NaN]) {
    const refused = expect.objectContaining({
      code: 'invalid_option',
      message: `timeoutMs must not be negative, got ${timeoutMs}`,
    });
    expect(() => engine.add(request(0, { timeoutMs }))).toThrow(refused);
  }
  expect(engine.hasWork).toBe(false);
  engine.add(request(0, { priority: 10, timeoutMs: 0 }));
});
