import { describe, expect, test } from 'vitest';
import { openTestMemory } from '../../../test/support/test-memory.ts';
import type { StoredHead } from './stored-records.ts';

const headOf = (id: string, more: Partial<StoredHead> = {}): StoredHead => ({
  id,
  expiresMs: 2000,
  owners: [{ requestId: `request-${id}`, userId: 'ann' }],
  about: { type: 'response' },
  ...more,
});

async function setUp() {
  const clock = { nowMs: 1000 };
  const memory = await openTestMemory({ now: () => clock.nowMs });
  return { memory, stored: memory.stored, clock };
}

test('[ST1] [ST2] returns heads and texts as they were put, the least recently written first', async () => {
  const { stored, clock } = await setUp();
  await stored.put('t', headOf('a'), 'first');
  clock.nowMs++;
  await stored.put('t', headOf('b'), '');
  clock.nowMs++;
  await stored.put('t', headOf('a', { about: 1 }), 'second');
  expect(await stored.heads('t')).toEqual([headOf('b'), headOf('a', { about: 1 })]);
  expect(await stored.read('t', 'a')).toEqual({ head: headOf('a', { about: 1 }), text: 'second' });
  expect(await stored.read('t', 'b')).toEqual({ head: headOf('b'), text: '' });
  expect([await stored.read('u', 'a'), await stored.heads('u'), stored.tenants()]).toEqual([null, [], ['t']]);
  clock.nowMs = 2000;
  expect([await stored.read('t', 'a'), await stored.heads('t')]).toEqual([null, []]);
});

test('[ST1] a text of any length is stored, and a shorter one leaves nothing of it', async () => {
  const { memory, stored } = await setUp();
  const long = `"\\${'🌍'.repeat(600_000)}`;
  await stored.put('t', headOf('a'), long);
  expect((await stored.read('t', 'a'))!.text === long).toBe(true);
  await stored.put('t', headOf('a'), 'short');
  expect((await stored.read('t', 'a'))!.text).toBe('short');
  const { records } = await memory.store.find('t', { kinds: ['state'], order: 'oldest', limit: 100 });
  expect(records.filter(({ body }) => JSON.stringify(body).includes('🌍'))).toEqual([]);
  await stored.delete('t', ['a', 'none']);
  expect((await memory.store.stats('t')).numRecords).toEqual({});
});

test('[ST2] a record that this version did not write is skipped', async () => {
  const { memory, stored } = await setUp();
  await stored.put('t', headOf('a'), 'text');
  await stored.put('t', headOf('b'), 'text');
  const { records } = await memory.store.find('t', { kinds: ['state'], order: 'oldest', limit: 100 });
  for (const record of records.filter(({ body }) => (body as { id?: string }).id === 'a')) {
    await memory.store.put([{ ...record, body: { id: 'a', owners: 5 } }]);
  }
  expect((await stored.heads('t')).map(({ id }) => id)).toEqual(['b']);
  expect(await stored.read('t', 'a')).toBeNull();
});

describe('[ST3] erasure', () => {
  test.each([
    [{ tenant: 't', userId: 'ann' }, 'c'],
    [{ tenant: 't', requestId: 'request-b' }, 'ac'],
    [{ tenant: 't' }, ''],
  ])('%j without a server deletes the objects of the subject', async (target, left) => {
    const { memory, stored } = await setUp();
    await stored.put('t', headOf('a'), 'text');
    await stored.put('t', headOf('b'), 'x'.repeat(2 ** 20 + 1));
    await stored.put('t', headOf('c', { owners: [{ requestId: 'request-c', userId: 'ben' }] }), 'text');
    await stored.put('u', headOf('a'), 'text');
    await memory.erase(target);
    expect((await stored.heads('t')).map(({ id }) => id).sort().join('')).toBe(left); // prettier-ignore
    const { numRecords } = await memory.store.stats('t');
    expect(numRecords.state ?? 0).toBe(2 * left.length);
    expect(await stored.heads('u')).toHaveLength(1);
  });
});
