import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createResponseStore, type StoredResponse } from './response-store.ts';

const LIMITS = { maxStoredResponses: 3, maxStoredBytes: 10_000, maxStoredBytesInAll: 20_000, storedResponseMs: 1000 };

const responseOf = (id: string, numChars = 10, owners: StoredResponse['owners'] = [{ requestId: id }]) => ({
  id,
  owners,
  body: { id },
  messages: [{ role: 'user' as const, content: 'x'.repeat(numChars) }],
});

const idsOf = (store: ReturnType<typeof createResponseStore>, tenant: string, ids: string): string =>
  [...ids].filter((id) => store.find(tenant, id) !== null).join('');

test('evicts the oldest responses above the limits of number and bytes', () => {
  const store = createResponseStore(LIMITS, createManualClock());
  for (const id of 'abcd') store.put('t', responseOf(id));
  expect(idsOf(store, 't', 'abcd')).toBe('bcd');
  store.put('t', responseOf('e', 4000));
  expect(idsOf(store, 't', 'bcde')).toBe('cde');
  store.put('t', responseOf('f', 4000));
  expect(idsOf(store, 't', 'cdef')).toBe('f');
  store.put('t', responseOf('g', 5000));
  expect(idsOf(store, 't', 'fg')).toBe('f');
});

test('drops expired responses and frees their bytes', () => {
  const clock = createManualClock();
  const store = createResponseStore(LIMITS, clock);
  store.put('t', responseOf('a'));
  clock.advance(999);
  expect(idsOf(store, 't', 'a')).toBe('a');
  clock.advance(1);
  expect(idsOf(store, 't', 'a')).toBe('');
  expect(store.delete('t', 'a')).toBe(false);
  expect(store.numBytes).toBe(0);
});

test('evicts from the tenant with the most bytes', () => {
  const store = createResponseStore({ ...LIMITS, maxStoredBytesInAll: 12_000 }, createManualClock());
  store.put('small', responseOf('a', 500));
  store.put('large', responseOf('b', 1500));
  store.put('large', responseOf('c', 1500));
  store.put('other', responseOf('d', 2000));
  expect(idsOf(store, 'small', 'a') + idsOf(store, 'large', 'bc') + idsOf(store, 'other', 'd')).toBe('acd');
});

test('a tenant sees and deletes only its own responses', () => {
  const store = createResponseStore(LIMITS, createManualClock());
  store.put('t', responseOf('a'));
  expect(store.find('u', 'a')).toBeNull();
  expect(store.delete('u', 'a')).toBe(false);
  expect(store.delete('t', 'a')).toBe(true);
  expect(store.find('t', 'a')).toBeNull();
});

test('keeps its limits under random operations and ends empty', () => {
  const step = fc.record({
    tenant: fc.constantFrom('t', 'u', 'v'),
    id: fc.integer({ min: 0, max: 5 }).map(String),
    numChars: fc.integer({ min: 0, max: 6000 }),
    waitMs: fc.integer({ min: 0, max: 400 }),
    isDelete: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const clock = createManualClock();
      const store = createResponseStore({ ...LIMITS, maxStoredBytesInAll: 15_000 }, clock);
      for (const { tenant, id, numChars, waitMs, isDelete } of steps) {
        clock.advance(waitMs);
        if (isDelete) store.delete(tenant, id);
        else store.put(tenant, responseOf(id, numChars));
        expect(store.numBytes).toBeLessThanOrEqual(15_000);
      }
      clock.advance(1000);
      store.delete('t', 'none');
      expect(store.numBytes).toBe(0);
    }),
  );
});

test('erases a tenant, or conversations with a request of a user', async () => {
  const store = createResponseStore(LIMITS, createManualClock());
  store.put('t', responseOf('a', 10, [{ requestId: 'a', userId: 'ann' }]));
  store.put('t', responseOf('b', 10, [{ requestId: 'a', userId: 'ann' }, { requestId: 'b', userId: 'ben' }])); // prettier-ignore
  store.put('t', responseOf('c', 10, [{ requestId: 'c', userId: 'ben' }]));
  store.put('u', responseOf('a'));
  const none = { tenant: 't', userId: null, requestId: null, requestIds: new Set<string>(), sessionIds: new Set<string>(), quotingIds: new Set<string>() }; // prettier-ignore
  const user = { ...none, userId: 'ann', requestIds: new Set(['a']) };
  expect(await store.erasure.count(user)).toBe(2);
  await store.erasure.erase(user);
  expect([await store.erasure.count(user), idsOf(store, 't', 'abc'), idsOf(store, 'u', 'abc')]).toEqual([0, 'c', 'a']);
  await store.erasure.erase(none);
  expect([idsOf(store, 't', 'abc'), idsOf(store, 'u', 'abc')]).toEqual(['', 'a']);
});
