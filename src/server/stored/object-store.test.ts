import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createManualClock, type ManualClock } from '../../../test/support/manual-clock.ts';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import type { StoredRecords } from '../../runtime/lower-layers.ts';
import { createObjectStore, type ObjectStore, type ObjectStoreContext } from './object-store.ts';
import { createProcessRecords } from './process-records.ts';
import type { StoredEntry, StoredObject } from './types.ts';

const LIMITS = { maxStoredResponses: 3, maxStoredBytes: 10_000, maxStoredBytesInAll: 20_000, storedResponseMs: 1000 };

const responseOf = (id: string, numChars = 10, owners: StoredEntry['owners'] = [{ requestId: id }]): StoredObject => ({
  id,
  type: 'response',
  createdMs: 1,
  model: 'm',
  metadata: {},
  owners,
  content: { body: { id }, messages: [{ role: 'user', content: 'x'.repeat(numChars) }] },
});

const chatOf = (id: string, items: readonly string[]): StoredObject<'conversation'> => ({
  ...responseOf(id),
  type: 'conversation',
  content: { items: items.map((item) => ({ id: item, type: 'message' })) },
});

interface Setup extends Partial<ObjectStoreContext> {
  readonly clock?: ManualClock;
  readonly more?: Partial<typeof LIMITS>;
}

/** Two stores of the same clock and records are two runs of one server. */
function setUp({ clock = createManualClock(), records = createProcessRecords(clock), more = {}, ...rest }: Setup = {}) {
  const reports: string[] = [];
  const limits = { ...LIMITS, ...more };
  const report = (message: string): void => void reports.push(message);
  return { store: createObjectStore({ limits, clock, records, report, ...rest }), clock, records, reports };
}

async function idsOf(store: ObjectStore, tenant: string, ids: string): Promise<string> {
  const objects = await Promise.all([...ids].map((id) => store.find(tenant, 'response', id)));
  return objects.map((object) => object?.id ?? '').join('');
}

const subjectOf = (tenant: string, userId: string | null = null, ids: readonly string[] = []) => ({
  tenant,
  userId,
  requestId: null,
  requestIds: new Set(ids),
  sessionIds: new Set<string>(),
  quotingIds: new Set<string>(),
});

describe('[R3] limits', () => {
  test('evicts the oldest objects above the limits of number and bytes', async () => {
    const { store } = setUp();
    for (const id of 'abcd') await store.put('t', responseOf(id));
    expect(await idsOf(store, 't', 'abcd')).toBe('bcd');
    await store.put('t', responseOf('e', 4000));
    expect(await idsOf(store, 't', 'bcde')).toBe('cde');
    await store.put('t', responseOf('f', 4000));
    expect(await idsOf(store, 't', 'cdef')).toBe('f');
    expect(await store.put('t', responseOf('g', 5000))).toBe(false);
    expect(await idsOf(store, 't', 'fg')).toBe('f');
  });

  test('a changed object counts as new', async () => {
    const { store } = setUp();
    for (const id of 'abc') await store.put('t', responseOf(id));
    await store.update('t', 'response', 'a', (object) => ({ ...object, metadata: { a: 'b' } }));
    await store.put('t', responseOf('d'));
    expect(await idsOf(store, 't', 'abcd')).toBe('acd');
  });

  test('drops expired objects and frees their bytes', async () => {
    const { store, clock, records } = setUp();
    await store.put('t', responseOf('a'));
    clock.advance(999);
    expect(await idsOf(store, 't', 'a')).toBe('a');
    clock.advance(1);
    expect(await idsOf(store, 't', 'a')).toBe('');
    expect(await store.list('t', 'response')).toEqual([]);
    expect(await store.delete('t', 'response', 'a')).toBe(false);
    await store.close();
    expect([store.numBytes, records.tenants()]).toEqual([0, []]);
  });

  test('evicts from the tenant with the most bytes', async () => {
    const { store } = setUp({ more: { maxStoredBytesInAll: 12_000 } });
    await store.put('small', responseOf('a', 500));
    await store.put('large', responseOf('b', 1500));
    await store.put('large', responseOf('c', 1500));
    await store.put('other', responseOf('d', 2000));
    const ids = [await idsOf(store, 'small', 'a'), await idsOf(store, 'large', 'bc'), await idsOf(store, 'other', 'd')];
    expect(ids.join('')).toBe('acd');
  });

  test('keeps its limits under random operations and ends empty', async () => {
    const step = fc.record({
      tenant: fc.constantFrom('t', 'u', 'v'),
      id: fc.integer({ min: 0, max: 5 }).map(String),
      numChars: fc.integer({ min: 0, max: 6000 }),
      waitMs: fc.integer({ min: 0, max: 400 }),
      isDelete: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { store, clock, records } = setUp({ more: { maxStoredBytesInAll: 15_000 } });
        for (const { tenant, id, numChars, waitMs, isDelete } of steps) {
          clock.advance(waitMs);
          if (isDelete) await store.delete(tenant, 'response', id);
          else await store.put(tenant, responseOf(id, numChars));
          expect(store.numBytes).toBeLessThanOrEqual(15_000);
        }
        clock.advance(1000);
        await store.delete('t', 'response', 'none');
        await store.close();
        expect([store.numBytes, records.tenants()]).toEqual([0, []]);
      }),
    );
  });
});

test('[R4] a tenant sees and deletes only its own objects', async () => {
  const { store } = setUp();
  await store.put('t', responseOf('a'));
  expect(await store.find('u', 'response', 'a')).toBeNull();
  expect(await store.find('t', 'conversation', 'a')).toBeNull();
  expect(await store.list('u', 'response')).toEqual([]);
  expect(await store.delete('u', 'response', 'a')).toBe(false);
  expect(await store.delete('t', 'conversation', 'a')).toBe(false);
  expect(await store.delete('t', 'response', 'a')).toBe(true);
  expect(await store.find('t', 'response', 'a')).toBeNull();
});

test('an object can be found, changed and deleted before it is written', async () => {
  const clock = createManualClock();
  const real = createProcessRecords(clock);
  let release = (): void => {};
  const isOpen = new Promise<void>((resolve) => (release = resolve));
  const records: StoredRecords = { ...real, put: async (...args) => (await isOpen, real.put(...args)) };
  const { store } = setUp({ clock, records });
  const writing = [store.put('t', chatOf('a', ['1'])), store.put('t', responseOf('b'))];
  expect(await idsOf(store, 't', 'b')).toBe('b');
  const changing = store.update('t', 'conversation', 'a', (chat) => chatOf('a', [...itemsOf(chat), '2']));
  const again = store.update('t', 'conversation', 'a', (chat) => chatOf('a', [...itemsOf(chat), '3']));
  const deleting = store.delete('t', 'response', 'b');
  release();
  await Promise.all([...writing, changing, again, deleting]);
  expect(itemsOf((await store.find('t', 'conversation', 'a'))!)).toEqual(['1', '2', '3']);
  expect(await idsOf(store, 't', 'b')).toBe('');
  expect((await records.heads('t')).map(({ id }) => id)).toEqual(['a']);
});

const itemsOf = ({ content }: StoredObject<'conversation'>): string[] => content.items.map(({ id }) => id);

test('a failed write is rejected, and the version before it stays', async () => {
  const clock = createManualClock();
  const real = createProcessRecords(clock);
  let isFull = false;
  const records: StoredRecords = {
    ...real,
    put: (...args) => (isFull ? Promise.reject(new Error('the disk is full')) : real.put(...args)),
  };
  const { store } = setUp({ clock, records });
  await store.put('t', chatOf('a', ['1']));
  isFull = true;
  await expect(store.update('t', 'conversation', 'a', () => chatOf('a', ['2']))).rejects.toThrow('the disk is full');
  expect(itemsOf((await store.find('t', 'conversation', 'a'))!)).toEqual(['1']);
  await expect(store.put('t', responseOf('b'))).rejects.toThrow('the disk is full');
  expect(await idsOf(store, 't', 'b')).toBe('');
});

describe('[R6] the next process', () => {
  const open = async () => {
    const clock = createManualClock();
    const memory = await openTestMemory({ now: clock.wallClock });
    return { clock, memory, records: memory.stored };
  };

  test('has the same objects, with their age', async () => {
    const shared = await open();
    const first = setUp(shared);
    await first.store.put('t', responseOf('a', 10, [{ requestId: 'a', userId: 'ann' }]));
    shared.clock.advance(600);
    await first.store.put('t', chatOf('c', ['1']));
    await first.store.close();
    const { store } = setUp(shared);
    expect(await store.find('t', 'response', 'a')).toEqual(responseOf('a', 10, [{ requestId: 'a', userId: 'ann' }]));
    expect((await store.list('t', 'conversation')).map(({ id }) => id)).toEqual(['c']);
    shared.clock.advance(400);
    expect(await idsOf(store, 't', 'a')).toBe('');
    expect(itemsOf((await store.find('t', 'conversation', 'c'))!)).toEqual(['1']);
  });

  test('has the same limits, per tenant and in all', async () => {
    const shared = await open();
    const first = setUp({ ...shared, more: { maxStoredBytesInAll: 12_000 } });
    await first.store.put('small', responseOf('a', 500));
    await first.store.put('large', responseOf('b', 1500));
    shared.clock.advance(1);
    await first.store.put('large', responseOf('c', 1500));
    await first.store.close();
    const { store } = setUp({ ...shared, more: { maxStoredBytesInAll: 12_000 } });
    await store.put('other', responseOf('d', 2000));
    await store.close();
    const ids = [await idsOf(store, 'small', 'a'), await idsOf(store, 'large', 'bc'), await idsOf(store, 'other', 'd')];
    expect(ids.join('')).toBe('acd');
    for (const id of 'efg') await store.put('small', responseOf(id));
    expect(await idsOf(store, 'small', 'aefg')).toBe('efg');
  });

  test('is not kept from starting or storing by damaged records', async () => {
    const shared = await open();
    const damaged: StoredRecords = {
      ...shared.records,
      heads: () => Promise.reject(new Error('the memory is damaged')),
    };
    await shared.records.put('t', { id: 'x', expiresMs: shared.clock.wallClock() + 9, owners: [], about: {} }, '{}');
    const { store, reports } = setUp({ ...shared, records: damaged });
    await store.put('t', responseOf('a'));
    expect(await idsOf(store, 't', 'ax')).toBe('a');
    await expect(store.list('t', 'response')).rejects.toThrow('the memory is damaged');
    expect(reports).toContain('reading stored objects failed: the memory is damaged');
    const about = { type: 'response', numBytes: 1, createdMs: 1, model: null, metadata: {} };
    await shared.records.put('t', { id: 'y', expiresMs: shared.clock.wallClock() + 9, owners: [], about }, '{');
    await expect(store.find('t', 'response', 'y')).rejects.toMatchObject({ code: 'io' });
  });

  test('sees what other processes store at the same time', async () => {
    const shared = await open();
    const [one, other] = [setUp({ ...shared, isShared: true }).store, setUp({ ...shared, isShared: true }).store];
    expect(await one.list('t', 'response')).toEqual([]);
    await other.put('t', responseOf('a'));
    expect(await idsOf(one, 't', 'a')).toBe('a');
    expect((await one.list('t', 'response')).map(({ id }) => id)).toEqual(['a']);
  });
});

describe('erasure', () => {
  test('forgets a tenant, or objects with a request of a user, and counts what the records hold', async () => {
    const clock = createManualClock();
    const memory = await openTestMemory({ now: clock.wallClock });
    const { store } = setUp({ clock, records: memory.stored, isErasing: memory.erasure.isErasing });
    // A request of another user reads the objects before the memory has erased them.
    const list = async (): Promise<void> => void (await store.list('t', 'response'));
    memory.erasure.register({ name: 'reader', erase: list, count: async () => 0 });
    memory.erasure.register(store.erasure);
    await store.put('t', responseOf('a', 10, [{ requestId: 'a', userId: 'ann' }]));
    await store.put('t', responseOf('b', 10, [{ requestId: 'a', userId: 'ann' }, { requestId: 'b', userId: 'ben' }])); // prettier-ignore
    await store.put('t', responseOf('c', 10, [{ requestId: 'c', userId: 'ben' }]));
    await store.put('u', responseOf('a'));
    expect(await store.erasure.count(subjectOf('t', 'ann', ['a']))).toBe(2);
    await store.erasure.erase(subjectOf('t', 'ann', ['a']));
    expect(await store.erasure.count(subjectOf('t', 'ann', ['a']))).toBe(2); // the records are still there
    const report = await memory.erase({ tenant: 't', userId: 'ann' });
    expect(report.parts).toContainEqual({ name: 'stored objects', numFound: 2, numLeft: 0 });
    expect([await idsOf(store, 't', 'abc'), await idsOf(store, 'u', 'abc')]).toEqual(['c', 'a']);
    await memory.erase({ tenant: 't', requestId: 'c' });
    expect([await idsOf(store, 't', 'abc'), await idsOf(store, 'u', 'abc')]).toEqual(['', 'a']);
    await store.put('t', responseOf('d'));
    await memory.erase({ tenant: 't' });
    expect([await idsOf(store, 't', 'd'), await idsOf(store, 'u', 'a')]).toEqual(['', 'a']);
  });

  test('an object with a request that is being erased is not written', async () => {
    const { store, records } = setUp({ isErasing: ({ userId }) => userId === 'ann' });
    await expect(store.put('t', responseOf('a', 10, [{ requestId: 'a', userId: 'ann' }]))).rejects.toMatchObject({
      code: 'conflict',
    });
    await store.put('t', responseOf('b'));
    expect((await records.heads('t')).map(({ id }) => id)).toEqual(['b']);
  });
});
