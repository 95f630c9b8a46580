import { describe, expect, test } from 'vitest';
import { createTestMemory } from '../operations/harness.contract.ts';
import type { JsonValue } from '../types.ts';
import { haveSameArguments } from './same-arguments.ts';
import type { CacheableTool } from './tool-cache.ts';

const SEARCH: CacheableTool = { name: 'search', isReadOnly: true };

async function setUp() {
  const { memory, services, run: operate } = await createTestMemory();
  let numRuns = 0;
  const call = (args: JsonValue, more: object = {}, tool = SEARCH) =>
    memory.toolCache.call(tool, args, { maxAgeMs: 1000, tenant: 'acme', ...more }, async () => `result ${++numRuns}`);
  return { cache: memory.toolCache, memory, services, operate, call, numRuns: () => numRuns };
}

describe('the tool cache', () => {
  test('[TC1] the same arguments in any order of keys run once, until the result is too old', async () => {
    const { call, services } = await setUp();
    expect(await call({ q: 'tides', n: 1 })).toMatchObject({ result: 'result 1', from: 'run', ageMs: 0 });
    services.timeMs += 1000;
    expect(await call({ n: 1, q: 'tides' })).toMatchObject({ result: 'result 1', from: 'exact', ageMs: 1000 });
    expect(await call({ n: 1, q: 'tides' }, { maxAgeMs: 999 })).toMatchObject({ result: 'result 2', from: 'run' });
    services.timeMs += 1001;
    expect(await call({ n: 1, q: 'tides' })).toMatchObject({ result: 'result 3', from: 'run' });
    expect(await call({ n: 1, q: 'tides' }, { maxAgeMs: 0 })).toMatchObject({ result: 'result 4', from: 'run' });
  });

  test('[TC2] similar arguments hit only if they differ in empty words', async () => {
    const { call, cache } = await setUp();
    await call({ query: 'the weather in Paris' });
    expect(await call({ query: 'Weather in Paris?' })).toMatchObject({ from: 'similar', result: 'result 1' });
    expect(await call({ query: 'the weather in London' })).toMatchObject({ from: 'run' });
    const long = (city: string) => ({ query: `weather report with wind rain sun clouds and temperature near ${city}` });
    await call(long('Paris'));
    expect(await call(long('London'))).toMatchObject({ from: 'run' });
    expect((await cache.stats('acme')).numDifferent).toBeGreaterThanOrEqual(1);
  });

  test('[TC3] tools with side effects, other tools, versions, users and tenants share nothing', async () => {
    const { call, numRuns } = await setUp();
    const args = { q: 'tides' };
    await call(args);
    const unsafe = { name: 'search', isReadOnly: false };
    const others: [object, CacheableTool?][] = [
      [{}, unsafe],
      [{}, unsafe],
      [{}, { name: 'find', isReadOnly: true }],
      [{}, { ...SEARCH, version: '2' }],
      [{ user: 'alice' }],
      [{ user: 'bob' }],
      [{ tenant: 'other' }],
    ];
    for (const [options, tool] of others) expect(await call(args, options, tool)).toMatchObject({ from: 'run' });
    expect(numRuns()).toBe(8);
    expect(await call(args, { user: 'bob' })).toMatchObject({ from: 'exact' });
  });

  test('[TC4] a clock that goes back makes no result fresh', async () => {
    const { call, services } = await setUp();
    await call({ q: 'tides' });
    services.timeMs -= 1;
    expect(await call({ q: 'tides' })).toMatchObject({ from: 'run' });
  });

  test('[TC5] errors are not stored; equal calls at once run once; a slow call is as old as its start', async () => {
    const { cache, services } = await setUp();
    const options = { maxAgeMs: 1000, tenant: 'acme' };
    const fail = () => cache.call(SEARCH, { q: 1 }, options, async () => Promise.reject(new Error('no network')));
    await expect(fail()).rejects.toThrow('no network');
    await expect(fail()).rejects.toThrow('no network');
    let end!: (value: string) => void;
    let hasStarted!: () => void;
    const started = new Promise<void>((resolve) => (hasStarted = resolve));
    const slow = cache.call(SEARCH, { q: 2 }, options, () => {
      hasStarted();
      return new Promise<string>((resolve) => (end = resolve));
    });
    await started;
    const joined = cache.call(SEARCH, { q: 2 }, options, async () => 'never');
    await new Promise((resolve) => setTimeout(resolve, 0));
    services.timeMs += 800;
    await new Promise((resolve) => setTimeout(resolve, 0));
    end('late');
    expect(await slow).toMatchObject({ from: 'run', result: 'late' });
    expect(await joined).toMatchObject({ from: 'joined', result: 'late' });
    services.timeMs += 201;
    expect(await cache.call(SEARCH, { q: 2 }, options, async () => 'new')).toMatchObject({
      from: 'run',
      result: 'new',
    });
  });

  test('[TC6] results of more than a megabyte are returned and not stored', async () => {
    const { cache } = await setUp();
    const large = 'x'.repeat((1 << 20) + 1);
    const call = () => cache.call(SEARCH, { q: 1 }, { maxAgeMs: 1000, tenant: 'acme' }, async () => large);
    expect((await call()).result).toHaveLength(large.length);
    expect(await call()).toMatchObject({ from: 'run', id: null });
    expect(await cache.stats('acme')).toMatchObject({ numTooLarge: 2, numStored: 0 });
  });

  test('[TC7] unknown options and limits below the safe ones are refused', async () => {
    const { call } = await setUp();
    for (const [options, option] of [
      [{ maxAge: 5 }, 'maxAge'],
      [{ maxAgeMs: -1 }, 'maxAgeMs'],
      [{ maxAgeMs: NaN }, 'maxAgeMs'],
      [{ minSimilarity: 0.5 }, 'minSimilarity'],
      [{ tenant: 'ruvllm' }, 'tenant'],
    ] as const) {
      // prettier-ignore
      await expect(call({ q: 1 }, options)).rejects.toMatchObject({ code: 'invalid_option', data: { option } });
    }
    await expect(call({ q: 1 }, {}, { ...SEARCH, readOnly: true } as CacheableTool)).rejects.toMatchObject({ data: { option: 'readOnly' } }); // prettier-ignore
  });

  test('[TC8] calls are listed, counted and cleared by tool', async () => {
    const { call, operate } = await setUp();
    await call({ q: 'a' });
    await call({ q: 'b' }, {}, { name: 'find', isReadOnly: true });
    expect(await operate('tool-cache.list', { tool: 'find' })).toMatchObject({ calls: [{ tool: 'find', args: { q: 'b' } }], next: null }); // prettier-ignore
    expect(await operate('tool-cache.stats', {})).toMatchObject({ numCalls: 2, numRun: 2, numStored: 2 });
    expect(await operate('tool-cache.clear', { tool: 'find' })).toEqual({ numCleared: 1 });
    expect(await operate('tool-cache.clear', {}, 'other')).toEqual({ numCleared: 0 });
    expect(await operate('tool-cache.clear', {})).toEqual({ numCleared: 1 });
  });

  test('[TC9] a result whose request is being erased is not stored', async () => {
    const { cache, memory } = await setUp();
    let erasing: Promise<unknown> = Promise.resolve();
    memory.erasure.register({ name: 'slow part', erase: () => new Promise((resolve) => setTimeout(resolve, 5)), count: async () => 0 }); // prettier-ignore
    await cache.call(SEARCH, { q: 1 }, { maxAgeMs: 1000, tenant: 'acme', user: 'alice' }, async () => {
      erasing = memory.erase({ tenant: 'acme', userId: 'alice' });
      await new Promise((resolve) => setTimeout(resolve, 1));
      return 'secret';
    });
    await erasing;
    expect((await cache.stats('acme')).numStored).toBe(0);
  });
});

test.each([
  [true, 'weather in Paris', "What's the weather in Paris?"],
  [true, 'please find hotels in Rome', 'hotel in Rome'],
  [true, { q: 'tides', n: 1 }, { n: 1, q: 'tides' }],
  [true, 'Paris', 'paris'],
  [false, 'weather in Paris', 'weather in London'],
  [false, 'flights from Paris to London', 'flights from London to Paris'],
  [false, 'man bites dog', 'dog bites man'],
  [false, 'Paris Hilton', 'Hilton Paris'],
  [false, 'restaurants with parking', 'restaurants without parking'],
  [false, 'books by Tolstoy', 'books about Tolstoy'],
  [false, 'search engine share', 'engine share'],
  [false, 'my orders', 'orders'],
  [false, 'apple news', 'apple new'],
  [false, 'order 1234', 'order 1243'],
  [false, 'report of 2026-11-18', 'report of 2026-11-17'],
  [false, 'src/App.ts', 'src/app.ts'],
  [false, { q: 'x', limit: 1 }, { q: 'x', limit: 2 }],
  [false, { q: 'x' }, { q: 'x', unit: 'C' }],
  [false, ['a', 'b'], ['b', 'a']],
  [false, null, ''],
  [false, '1', 1],
] as const)('[TC10] same arguments: %s for %j and %j', (expected, a, b) => {
  expect(haveSameArguments(a as JsonValue, b as JsonValue)).toBe(expected);
  expect(haveSameArguments(b as JsonValue, a as JsonValue)).toBe(expected);
});
