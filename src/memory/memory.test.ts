import { describe, expect, test } from 'vitest';
import { openMemory } from './memory.ts';
import { createTestMemory } from './operations/harness.contract.ts';
import { STATE_TENANT } from './state-tenant.ts';

describe('the memory as a whole', () => {
  test('[OP2] refuses its own tenant, also from code', async () => {
    const { memory } = await createTestMemory();
    await memory.add('acme', { text: 'a card' });
    const before = await memory.store.stats(STATE_TENANT);
    const refused = { code: 'invalid_option', data: { option: 'tenant' } };
    await expect(memory.add(STATE_TENANT, { text: 'a card' })).rejects.toMatchObject(refused);
    await expect(memory.remove(STATE_TENANT, [])).rejects.toMatchObject(refused);
    await expect(memory.meet(STATE_TENANT)).rejects.toMatchObject(refused);
    await expect(memory.erase({ tenant: STATE_TENANT })).rejects.toMatchObject(refused);
    expect(await memory.store.stats(STATE_TENANT)).toEqual(before);
  });

  test('[SC3] refuses an unknown key of an item', async () => {
    const { memory } = await createTestMemory();
    const item = { text: 'a card', topics: 'cards' };
    await expect(memory.add('acme', item)).rejects.toMatchObject({ data: { option: 'topics' } });
    expect((await memory.stats('acme')).numRecords).toEqual({});
  });

  test('get returns added texts, and no expired records or other kinds', async () => {
    const { memory, services } = await createTestMemory();
    const id = await memory.add('acme', { text: 'a card', expiresMs: services.now() + 10 });
    expect(await memory.get('acme', id)).toMatchObject({ id, text: 'a card' });
    services.timeMs += 10;
    expect(await memory.get('acme', id)).toBeNull();
    const turn = await memory.sessions.addTurn('acme', 'chat', { query: 'q', answer: 'a' });
    const { records } = await memory.store.find('acme', { kinds: ['session', 'qa-pair'], order: 'oldest', limit: 9 });
    expect(records.map((record) => record.id)).toContain(turn.id);
    for (const record of records) expect(await memory.get('acme', record.id)).toBeNull();
  });

  test('one tidying removes all that has expired', async () => {
    const { memory, services } = await createTestMemory(null);
    for (let i = 0; i < 2100; i++) await memory.add('acme', { text: 'a card', expiresMs: services.now() + 1 });
    services.timeMs += 1;
    await memory.maintain();
    expect((await memory.stats('acme')).numRecords).toEqual({});
  });

  test('[WL15] the first maintenance removes segments without a manifest, but not while degraded', async () => {
    const { memory, archive, services, store, audit } = await createTestMemory();
    await memory.meet('acme');
    await audit([{ query: 'one' }, { query: 'two' }]);
    services.timeMs += 8 * 86_400_000;
    await memory.audit.retain('acme');
    const [[name, bytes]] = [...archive.files] as [[string, Uint8Array]];
    const unnamed = name.replace(/-./, (text) => (text === '-0' ? '-1' : '-0'));
    const plain = await archive.unseal('acme', bytes, `witness-segment:${name}`);
    archive.files.set(unnamed, await archive.seal('acme', plain, `witness-segment:${unnamed}`));
    const left = { ...archive, leftBehind: async () => [name, unnamed] };
    let reason: string | null = 'away';
    const context = { store, services, schedule: () => () => {}, embedder: null, report: () => {}, archive: left };
    const other = await openMemory({ ...context, degraded: () => reason });
    expect(other.degraded()).toBe('away');
    await other.maintain();
    expect([...archive.files.keys()]).toEqual([name, unnamed]);
    reason = null;
    expect([other.degraded(), memory.degraded()]).toEqual([null, null]);
    await other.maintain();
    expect([...archive.files.keys()]).toEqual([name]);
    expect(await memory.audit.verify('acme')).toMatchObject({ isIntact: true, numArchived: 2 });
  });

  test('[OP11] erasing a tenant takes the files of its audit log, and starts a new chain', async () => {
    const { memory, archive, services, audit } = await createTestMemory();
    await audit([{ query: 'old' }]);
    await audit([{ query: 'old' }], 'other');
    services.timeMs += 8 * 86_400_000;
    await memory.audit.retain('acme');
    await memory.audit.retain('other');
    expect(archive.files.size).toBe(2);
    await memory.erase({ tenant: 'acme' });
    expect(archive.files.size).toBe(1);
    await audit([{ query: 'new' }]);
    expect(await memory.audit.verify('acme')).toMatchObject({ isIntact: true, numChecked: 1, head: { sequence: 1 } });
    expect(await memory.audit.verify('other')).toMatchObject({ isIntact: true, numArchived: 1 });
  });
});
