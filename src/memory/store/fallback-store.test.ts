import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { RuvLLMError, type ErrorCode } from '../../core/errors.ts';
import { putBuilt } from '../record-builders.ts';
import type { Trajectory } from '../schemas/trajectory.ts';
import type { MemoryStore } from '../types.ts';
import { createFallbackStore, type FallbackStoreOptions } from './fallback-store.ts';
import { createInMemoryStore } from './in-memory/in-memory-store.ts';
import { START_MS, testMemoryStore } from './memory-store.contract.ts';
import { expectRefusal, idOf, recordOf } from './store-setup.contract.ts';

const createMemory = (): MemoryStore => createInMemoryStore({ now: () => START_MS });

/** A store whose next `put`s fail. */
function createFailing(): { store: MemoryStore; failures: ErrorCode[]; closed: boolean } {
  const store = createMemory();
  const failing = { failures: [] as ErrorCode[], closed: false, store };
  const run = <T>(call: () => Promise<T>): Promise<T> => {
    const code = failing.failures.shift();
    return code === undefined
      ? call()
      : Promise.reject(new RuvLLMError(code, `planted ${code}`, { isRetryable: true }));
  };
  failing.store = {
    ...store,
    put: (records) => run(() => store.put(records)),
    eraseTenant: (tenant) => run(() => store.eraseTenant(tenant)),
    close: async () => void (failing.closed = true),
  };
  return failing;
}

async function createWith(
  openPrimary: FallbackStoreOptions['openPrimary'],
  change: Partial<FallbackStoreOptions> = {},
) {
  const told: string[] = [];
  const clock = { ms: 0 };
  const report = (message: string): void => void told.push(message);
  const options = { openPrimary, createFallback: createMemory, report, now: () => clock.ms, ...change };
  return { told, clock, store: await createFallbackStore(options) };
}

const trajectory: Trajectory = { requestId: idOf(1), sessionId: null, userId: null, model: 'm', createdMs: START_MS, expiresMs: null, query: 'q', prompt: null, answer: 'a', correction: null, steps: [], parameters: { propensity: null }, retrieved: [], verdict: 'unknown', quality: null, latencyMs: 1, numOutputTokens: 1, feedback: [], isDistilled: false, embedding: null, space: null }; // prettier-ignore

/** After all promises that wait for nothing. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const disk = (code: ErrorCode) => () => Promise.reject(new RuvLLMError(code, `planted ${code}`));

testMemoryStore('the fallback store with a working disk', async () => {
  const clock = { ms: START_MS };
  const { store } = await createWith(() => createInMemoryStore({ now: () => clock.ms }));
  return { store, clock, reopen: null };
});

describe('fallback', () => {
  test.each(['io', 'disk_full'] as const)(
    '[MS29] a store that cannot be opened (%s) is replaced, and that is told once',
    async (code) => {
      const { store, told } = await createWith(disk(code));
      await store.put([recordOf(1)]);
      expect((await store.get('alpha', [idOf(1)]))[0]).not.toBeNull();
      expect((await store.stats(null)).degraded).toBe(`it cannot be opened: planted ${code}`);
      expect(told).toEqual([`the memory is kept in this process only and is lost when it ends, because it cannot be opened: planted ${code}`]); // prettier-ignore
    },
  );

  test.each(['invalid_option', 'conflict', 'unsupported'] as const)(
    '[MS29] %s at the opening is not the disk’s, and thrown',
    async (code) => {
      await expectRefusal(createWith(disk(code)), code);
    },
  );

  test('[MS29] keeps its records while writes fail, refuses further writes at once, and works again by itself', async () => {
    const failing = createFailing();
    const { store, told, clock } = await createWith(() => failing.store);
    await store.put([recordOf(1)]);
    failing.failures.push(...Array<ErrorCode>(4).fill('disk_full'));
    for (let i = 0; i < 3; i++) await expectRefusal(store.put([recordOf(2)]), 'disk_full', 'cannot be written');
    // The disk is not asked again until the next probe.
    await expectRefusal(store.put([recordOf(2)]), 'disk_full', 'its disk is full');
    expect(failing.failures).toHaveLength(1);
    expect((await store.get('alpha', [idOf(1)]))[0]).not.toBeNull();
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(1);
    expect(store.degraded()).toBe('it cannot be written: planted disk_full');
    expect((await store.stats(null)).degraded).toBe('it cannot be written: planted disk_full');
    clock.ms += 1000;
    await expectRefusal(store.put([recordOf(2)]), 'disk_full');
    clock.ms += 1000;
    await store.put([recordOf(2)]);
    expect([store.degraded(), (await store.stats(null)).degraded]).toEqual([null, null]);
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(2);
    expect(told).toEqual([
      'the memory cannot be written until its disk or server works again: planted disk_full',
      'the memory can be written again',
    ]);
    await store.close();
    expect(failing.closed).toBe(true);
  });

  test('[MS29] a failure is shown until the next write succeeds, and reported only when it lasts', async () => {
    const failing = createFailing();
    const { store, told } = await createWith(() => failing.store);
    failing.failures.push('io');
    await expectRefusal(store.put([recordOf(1)]), 'io');
    expect(store.degraded()).toBe('it cannot be written: planted io');
    await store.put([recordOf(1)]);
    expect([store.degraded(), told]).toEqual([null, []]);
  });

  test('[MS29] a lost server is asked with growing delays until it answers, and calls work again', async () => {
    const memory = createMemory();
    const gone = () => new RuvLLMError('io', 'planted loss', { isRetryable: true, data: { isConnectionLost: true } });
    let isAway = true;
    const lose = <T>(call: () => Promise<T>): Promise<T> => (isAway ? Promise.reject(gone()) : call());
    const primary: MemoryStore = { ...memory, put: (records) => lose(() => memory.put(records)), get: (...args) => lose(() => memory.get(...args)), count: (...args) => lose(() => memory.count(...args)) }; // prettier-ignore
    const timers: { task: () => void; delayMs: number }[] = [];
    const schedule = (task: () => void, delayMs: number) => {
      timers.push({ task, delayMs });
      return () => {};
    };
    const { store, told } = await createWith(() => primary, { schedule });
    for (let i = 0; i < 3; i++) await expectRefusal(store.put([recordOf(1)]), 'io', 'cannot be written');
    await expectRefusal(store.get('alpha', [idOf(1)]), 'io', 'cannot be read');
    for (let i = 0; i < 7; i++) {
      timers[i]!.task();
      await settled();
    }
    expect(timers.map(({ delayMs }) => delayMs)).toEqual([250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
    expect(store.degraded()).toBe('it cannot be written: planted loss');
    isAway = false;
    timers[7]!.task();
    await settled();
    expect(store.degraded()).toBeNull();
    await store.put([recordOf(1)]); // at once: the breaker is closed
    expect(timers).toHaveLength(8);
    expect(told).toEqual(['the memory cannot be written until its disk or server works again: planted loss', 'the memory can be written again']); // prettier-ignore
  });

  test('[MS29] a full disk is not the server’s, and a write whose outcome is unknown says so', async () => {
    const errors: RuvLLMError[] = [];
    const failing = { ...createMemory(), put: () => Promise.reject(errors.shift()!) };
    const timers: (() => void)[] = [];
    const schedule = (task: () => void) => (timers.push(task), () => {});
    const { store } = await createWith(() => failing, { schedule });
    errors.push(new RuvLLMError('disk_full', 'planted', { isRetryable: true }));
    await expectRefusal(store.put([recordOf(1)]), 'disk_full');
    expect(timers).toHaveLength(0);
    const data = { isConnectionLost: true, isOutcomeUnknown: true };
    errors.push(new RuvLLMError('io', 'planted', { isRetryable: true, data }));
    const put = store.put([recordOf(1)]);
    await expectRefusal(put, 'io', 'it is unknown whether this write succeeded');
    await expect(put).rejects.toMatchObject({ isRetryable: true, data: { isOutcomeUnknown: true } });
  });

  test('[MS29] one call tries again while others are refused at once', async () => {
    const failing = createFailing();
    const { store, clock } = await createWith(() => failing.store, { maxFailures: 1 });
    failing.failures.push('io');
    await expectRefusal(store.put([recordOf(1)]), 'io');
    clock.ms += 1000;
    const outcomes = await Promise.allSettled([1, 2, 3].map((i) => store.put([recordOf(i)])));
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  });

  test('[MS29] a damaged record does not stop the others', async () => {
    const damaged = new RuvLLMError('io', 'the memory is damaged: x', { data: { isDamaged: true } });
    const primary: MemoryStore = { ...createMemory(), get: () => Promise.reject(damaged) };
    const { store } = await createWith(() => primary);
    await store.put([recordOf(1)]);
    for (let i = 0; i < 9; i++) await expectRefusal(store.get('alpha', [idOf(1)]), 'io', 'damaged');
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(1);
    expect(store.degraded()).toContain('a part of it cannot be read');
  });

  test('[MS29] records are built in this thread only if the store cannot', async () => {
    const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();
    const { store } = await createWith(disk('io'), { sha256 });
    const add = () => putBuilt(store, sha256, 'trajectories', [{ tenant: 'alpha', trajectory }]);
    await add();
    await expectRefusal(add(), 'conflict'); // as in any store
    expect(await store.count('alpha', { kinds: ['trajectory'] })).toBe(1);
  });

  test('[MS29] does not count errors of the caller', async () => {
    const failing = createFailing();
    const { store, told } = await createWith(() => failing.store);
    for (let i = 0; i < 9; i++) await expectRefusal(store.put([]), 'invalid_option');
    failing.failures.push(...Array<ErrorCode>(9).fill('conflict'));
    for (let i = 0; i < 9; i++) await expectRefusal(store.put([recordOf(1)]), 'conflict');
    expect([told, (await store.stats(null)).degraded]).toEqual([[], null]);
  });

  test('[MS29] fails to erase a tenant when only the copy in memory is erased', async () => {
    const { store } = await createWith(disk('io'));
    await store.put([recordOf(1)]);
    await expectRefusal(store.eraseTenant('alpha'), 'io', 'but not on disk');
    expect(await store.get('alpha', [idOf(1)])).toEqual([null]);
    const failing = createFailing();
    const other = await createWith(() => failing.store, { maxFailures: 1 });
    failing.failures.push('io');
    await expectRefusal(other.store.eraseTenant('alpha'), 'io', 'planted');
    expect(other.told).toEqual([]);
  });
});
