import { expect, test } from 'vitest';
import { expectRefusal, idOf, recordOf, vectorOf, type OpenStore } from './store-setup.contract.ts';

export function testTenants(open: OpenStore): void {
  test('[MS13] tenants see nothing of each other, even under the same ids', async () => {
    const { store } = await open();
    const of = (tenant: string, body: number, x: number) =>
      recordOf(1, { tenant, body, fields: { source: 'same' }, vector: vectorOf(1, x), space: 's' });
    await store.put([of('alpha', 1, 0), of('beta', 2, 1)]);
    await store.put([recordOf(2, { tenant: 'beta' })]);
    await store.putEdges('beta', [{ from: idOf(1), to: idOf(2), relation: 'r', weight: 1, confidence: 1 }]);
    expect((await store.get('alpha', [idOf(1), idOf(2)])).map((record) => record?.body ?? null)).toEqual([1, null]);
    expect((await store.get('beta', [idOf(1)]))[0]).toMatchObject({ tenant: 'beta', body: 2 });
    const filter = { fields: [{ field: 'source', is: '=', value: 'same' }] } as const;
    const page = await store.find('alpha', { kinds: ['fact'], filter, order: 'newest', limit: 9 });
    expect(page.records.map(({ body }) => body)).toEqual([1]);
    expect(await store.count('beta', { kinds: ['fact'] })).toBe(2);
    const near = await store.nearest('beta', { kinds: ['fact'], vector: vectorOf(1, 0), space: 's', k: 9 });
    expect(near.map(({ record }) => record.body)).toEqual([2]);
    expect(await store.edgesOf('alpha', { ids: [idOf(1)], direction: 'both', limit: 9 })).toEqual([]);
    expect(await store.deleteEdges('alpha', [{ from: idOf(1), to: idOf(2), relation: 'r' }])).toBe(0);
    expect(await store.delete('alpha', [idOf(1), idOf(2)])).toBe(1);
    expect(await store.count('beta', { kinds: ['fact'] })).toBe(2);
    for (const other of ['gamma', 'Alpha', 'alpha ']) {
      expect(await store.get(other, [idOf(1)])).toEqual([null]);
      expect(await store.stats(other)).toMatchObject({ numRecords: {}, numEdges: 0, numVectors: 0 });
    }
  });

  test('[MS14] erases a tenant, who can start anew, and no other', async () => {
    const { store, reopen } = await open();
    const of = (i: number, tenant: string) => recordOf(i, { tenant, vector: vectorOf(1, i), space: 's' });
    await store.put([of(1, 'alpha'), of(2, 'alpha'), of(1, 'beta')]);
    await store.putEdges('alpha', [{ from: idOf(1), to: idOf(2), relation: 'r', weight: 1, confidence: 1 }]);
    const query = { kinds: ['fact'], vector: vectorOf(1, 0), space: 's', k: 9 } as const;
    expect(await store.nearest('alpha', query)).toHaveLength(2);
    await store.eraseTenant('alpha');
    await store.eraseTenant('never there');
    expect(await store.get('alpha', [idOf(1)])).toEqual([null]);
    expect(await store.nearest('alpha', query)).toEqual([]);
    expect(await store.stats(null)).toMatchObject({ numRecords: { fact: 1 }, numEdges: 0, numVectors: 1 });
    await store.put([of(1, 'alpha')]);
    expect(await store.put([of(1, 'alpha')])).toEqual([{ id: idOf(1), version: 2 }]);
    const current = reopen === null ? store : await reopen();
    expect(await current.nearest('alpha', query)).toHaveLength(1);
    expect(await current.nearest('beta', query)).toHaveLength(1);
    await current.checkIntegrity();
  });

  test('[MS14] writes that are under way when a tenant is erased are before or after it, never half', async () => {
    const { store } = await open();
    await store.put([recordOf(1)]);
    const [, erased, late] = await Promise.allSettled([
      store.put([recordOf(2), recordOf(3)]),
      store.eraseTenant('alpha'),
      store.put([recordOf(4), recordOf(5)]),
    ]);
    expect(erased.status).toBe('fulfilled');
    const left = await store.get('alpha', [1, 2, 3, 4, 5].map(idOf));
    const isThere = left.map((record) => record !== null);
    expect(isThere.slice(0, 3)).toEqual([false, false, false]);
    expect(isThere[3]).toBe(isThere[4]);
    if (isThere[3]) expect(late.status).toBe('fulfilled');
    await store.checkIntegrity();
  });

  test('[MS15] counts of one tenant and of all', async () => {
    const { store } = await open();
    expect(await store.stats(null)).toMatchObject({ numRecords: {}, numEdges: 0, numVectors: 0, degraded: null });
    await store.put([
      recordOf(1),
      recordOf(2, { kind: 'session', vector: vectorOf(1), space: 's' }),
      recordOf(3, { tenant: 'beta' }),
    ]);
    expect(await store.stats('alpha')).toMatchObject({ numRecords: { fact: 1, session: 1 }, numVectors: 1 });
    expect(await store.stats(null)).toMatchObject({ numRecords: { fact: 2, session: 1 }, numVectors: 1 });
    expect((await store.stats(null)).diskBytes).toBeGreaterThanOrEqual(0);
  });

  test('[MS13] a name that is no name is refused', async () => {
    const { store } = await open();
    for (const tenant of ['', 'x'.repeat(1025), 'ü'.repeat(600), '\ud800', 7 as never]) {
      await expectRefusal(store.put([recordOf(1, { tenant })]), 'invalid_option', 'tenant');
      await expectRefusal(store.get(tenant, []), 'invalid_option', 'tenant');
      await expectRefusal(store.eraseTenant(tenant), 'invalid_option', 'tenant');
    }
    await store.put([recordOf(1, { tenant: 'x'.repeat(1000) })]);
  });
}
