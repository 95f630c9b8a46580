import { describe, expect, test } from 'vitest';
import { percentiles } from './aggregate.ts';
import { createHarness, numbered, TENANT, auditInput, writeAll } from './harness.contract.ts';
import type { AuditPage } from './index.ts';

const queries = (page: AuditPage) => page.entries.map(({ entry }) => entry.query);
const latency = (totalMs: number, ttftMs: number | null = null) => ({ ...auditInput().latency, totalMs, ttftMs });
const failed = (code: string, message = 'no') => ({ code, message, isRetryable: false });

async function openFilled() {
  const harness = createHarness();
  const log = await harness.open();
  await writeAll(log, [
    { query: 'a', model: 'small', quality: 0.2, latency: latency(100, 10), queryEmbedding: Float32Array.of(1, 0) },
    { query: 'b', model: 'large', quality: 0.9, latency: latency(500, 50), queryEmbedding: Float32Array.of(0.9, 0.1) },
  ]);
  harness.services.timeMs += 3_600_000;
  await writeAll(log, [
    {
      query: 'c',
      model: 'small',
      quality: null,
      error: failed('overloaded', 'The Queue is full'),
      latency: latency(5),
      queryEmbedding: Float32Array.of(0, 1),
    },
    {
      query: 'd',
      model: 'small',
      quality: 0.4,
      latency: latency(900, 90),
      response: 'ÄPFEL und Birnen',
      queryEmbedding: Float32Array.of(0.1, 1),
      sessionId: 'chat-2',
    },
  ]);
  return { ...harness, log };
}

describe('[WL12] search by any combination', () => {
  const HOUR = Date.UTC(2026, 0, 1) + 3_600_000;
  const similarTo = { vector: Float32Array.of(1, 0), space: 'test-2' };
  const cases: readonly [object, string[]][] = [
    [{}, ['d', 'c', 'b', 'a']],
    [{ order: 'oldest' }, ['a', 'b', 'c', 'd']],
    [{ fromMs: HOUR }, ['d', 'c']],
    [{ toMs: HOUR }, ['b', 'a']],
    [{ maxQuality: 0.5 }, ['d', 'a']],
    [{ minQuality: 0.9 }, ['b']],
    [{ minTotalMs: 500, maxTotalMs: 600 }, ['b']],
    [{ minTtftMs: 50 }, ['d', 'b']],
    [{ model: 'small', hasError: false }, ['d', 'a']],
    [{ hasError: true }, ['c']],
    [{ errorCode: 'overloaded' }, ['c']],
    [{ sessionId: 'chat-2' }, ['d']],
    [{ text: 'äpfel' }, ['d']],
    [{ text: 'queue IS' }, ['c']],
    [{ text: 'nowhere' }, []],
    [{ similarTo }, ['a', 'b', 'd', 'c']],
    [{ similarTo: { ...similarTo, minSimilarity: 0.5 } }, ['a', 'b']],
    [
      { similarTo, model: 'small', fromMs: HOUR, maxQuality: 0.5, minTotalMs: 1, text: 'BIRNEN', hasError: false },
      ['d'],
    ],
    [{ similarTo, text: 'b' }, ['b', 'd']],
  ];
  test.each(cases)('%o', async (query, expected) => {
    const { log } = await openFilled();
    const page = await log.search(TENANT, query);
    expect(queries(page)).toEqual(expected);
    expect(page).toMatchObject({ next: null, isComplete: true });
  });
  test('a place that is no page’s end is refused by its name', async () => {
    const log = await createHarness().open();
    for (const after of ['garbage', '{"pin":-1}', '5']) {
      const refused = { code: 'invalid_option', message: 'after must be "next" of a page', data: { option: 'after' } };
      await expect(log.search(TENANT, { after })).rejects.toMatchObject(refused);
    }
  });
  test('unknown conditions and values out of range are refused', async () => {
    const { log } = await openFilled();
    for (const query of [
      { colour: 'red' },
      { limit: 0 },
      { limit: 1e6 },
      { minQuality: NaN },
      { text: '' },
      { after: 'x' },
      { after: '{"pin":-1}' },
    ]) {
      await expect(log.search(TENANT, query as object)).rejects.toThrow(
        expect.objectContaining({ code: 'invalid_option' }),
      );
    }
  });
});

describe('[WL13] pages', () => {
  test.each([
    [{}],
    [{ text: 'query' }],
    [{ similarTo: { vector: Float32Array.of(1, 0), space: 'test-2' } }],
    [{ order: 'oldest' as const }],
  ])('of %o give everything once, while more is written', async (query) => {
    const { open, services } = createHarness();
    const log = await open({ log: { numSimilar: 0 } });
    await writeAll(log, numbered(25).map((entry, index) => ({ ...entry, queryEmbedding: Float32Array.of(1, index / 10) }))); // prettier-ignore
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page: AuditPage = await log.search(TENANT, { ...query, limit: 4, ...(after === null ? {} : { after }) });
      seen.push(...queries(page));
      after = page.next;
      services.timeMs += 1;
      await writeAll(log, [{ query: 'query in between' }]);
    } while (after !== null);
    expect(seen.length).toBe(25);
    expect(new Set(seen)).toEqual(new Set(numbered(25).map(({ query }) => query)));
  });
  test('a scan that ends at its bound says so, and can be taken up', async () => {
    const { open } = createHarness();
    const log = await open();
    await writeAll(log, numbered(10));
    const first = await log.search(TENANT, { text: 'query 1', maxScanned: 4, order: 'oldest' });
    expect([queries(first), first.isComplete, first.numScanned]).toEqual([['query 1'], false, 4]);
    const second = await log.search(TENANT, { text: 'query 1', maxScanned: 4, order: 'oldest', after: first.next! });
    expect([queries(second), second.isComplete, second.numScanned]).toEqual([[], false, 4]);
    const third = await log.search(TENANT, { text: 'query 1', maxScanned: 4, order: 'oldest', after: second.next! });
    expect([queries(third), third.isComplete, third.next]).toEqual([['query 10'], true, null]);
  });
  test('so does one among the nearest', async () => {
    const { open } = createHarness();
    const log = await open();
    await writeAll(log, numbered(10));
    const similarTo = { vector: Float32Array.of(1, 0), space: 'test-2' };
    const page = await log.search(TENANT, { similarTo, text: 'query 10', maxScanned: 4 });
    expect(page).toMatchObject({ entries: [], isComplete: false, numScanned: 4 });
    let { next } = page;
    const seen = [];
    while (next !== null) {
      const more = await log.search(TENANT, { similarTo, text: 'query 10', maxScanned: 4, after: next });
      seen.push(...queries(more));
      next = more.next;
    }
    expect(seen).toEqual(['query 10']);
  });
});

describe('[WL14] aggregates', () => {
  test('counts, rates, percentiles, trend and models', async () => {
    const { log } = await openFilled();
    const result = await log.aggregate(TENANT);
    expect(result).toMatchObject({
      count: 4,
      numErrors: 1,
      errorRate: 0.25,
      meanQuality: 0.5,
      totalMs: { p50: 100, p90: 900, p95: 900, p99: 900, max: 900, count: 4 },
      ttftMs: { p50: 50, max: 90, count: 3 },
      models: [
        { model: 'small', count: 3, share: 0.75, numErrors: 1 },
        { model: 'large', count: 1, share: 0.25, numErrors: 0 },
      ],
      errors: [{ code: 'overloaded', count: 1 }],
      isComplete: true,
    });
    expect(result.trend.map(({ startMs, count, errorRate }) => [startMs, count, errorRate])).toEqual([
      [Date.UTC(2026, 0, 1), 2, 0],
      [Date.UTC(2026, 0, 1, 1), 2, 0.5],
    ]);
    expect(await log.aggregate(TENANT, { model: 'large' })).toMatchObject({ count: 1, totalMs: { p50: 500 } });
    expect(await log.aggregate(TENANT, { maxEntries: 3 })).toMatchObject({ count: 3, isComplete: false });
    expect(await log.aggregate('nobody')).toMatchObject({
      count: 0,
      errorRate: null,
      totalMs: null,
      trend: [],
      models: [],
    });
  });
  test('percentiles are of nearest rank', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(percentiles(values)).toEqual({ p50: 50, p90: 90, p95: 95, p99: 99, max: 100, count: 100 });
    expect(percentiles([7])).toEqual({ p50: 7, p90: 7, p95: 7, p99: 7, max: 7, count: 1 });
    expect(percentiles([10, 9])).toMatchObject({ p50: 9, p90: 10 });
  });
});
