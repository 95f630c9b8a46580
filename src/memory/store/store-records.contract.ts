import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { AUDIT_KIND, RECORD_KINDS, type JsonValue, type MemoryStore } from '../types.ts';
import { expectRefusal, idOf, recordOf, START_MS, vectorOf, type OpenStore } from './store-setup.contract.ts';

export function testRecords(open: OpenStore): void {
  test('[MS1] returns every field as it was written, also after a restart', async () => {
    const { store, clock, reopen } = await open();
    const written = recordOf(1, {
      kind: AUDIT_KIND,
      createdMs: 12,
      expiresMs: START_MS + 5,
      fields: { sequence: -1.5, hasError: false, model: 'm\u0000ü', sessionId: '', requestId: null },
      body: { text: 'ä\ud83d\ude00\u2028"', list: [1, 1e300, -0.1, null, true, { __proto__x: [] }], '': '' },
      vector: vectorOf(1.5, -300, 1e-30, 0),
      space: 'space ü',
    });
    expect(await store.put([written])).toEqual([{ id: idOf(1), version: 1 }]);
    const expected = { ...written, updatedMs: START_MS, version: 1 };
    expect(await store.get('alpha', [idOf(1)])).toEqual([expected]);
    clock.ms += 10;
    await store.put([{ ...written, body: 7, vector: null, space: null, expiresMs: null, fields: {} }]);
    const changed = { ...expected, body: 7, vector: null, space: null, expiresMs: null, fields: {} };
    const second = { ...changed, createdMs: 12, updatedMs: START_MS + 10, version: 2 };
    expect(await store.get('alpha', [idOf(1)])).toEqual([second]);
    if (reopen !== null) expect(await (await reopen()).get('alpha', [idOf(1), idOf(2)])).toEqual([second, null]);
  });

  test('[MS1] all kinds, and any JSON as body', async () => {
    const { store } = await open();
    await store.put(RECORD_KINDS.map((kind, i) => recordOf(i, { kind })));
    const all = await store.get('alpha', RECORD_KINDS.map((_, i) => idOf(i))); // prettier-ignore
    expect(all.map((record) => record?.kind)).toEqual([...RECORD_KINDS]);
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (body) => {
        await store.put([recordOf(100, { body: body as JsonValue })]);
        const [record] = await store.get('alpha', [idOf(100)]);
        expect(record!.body).toEqual(JSON.parse(JSON.stringify(body)));
      }),
      { numRuns: campaign({ short: 20, long: 300 }) },
    );
  });

  test('[MS1] is not affected by later changes to the caller’s objects', async () => {
    const { store } = await open();
    const [vector, body, fields] = [vectorOf(1, 2), { list: [1] }, { quality: 1 }];
    const writing = store.put([recordOf(1, { vector, space: 's', body, fields })]);
    vector[0] = 9;
    body.list.push(2);
    fields.quality = 9;
    await writing;
    const [read] = await store.get('alpha', [idOf(1)]);
    expect(read).toMatchObject({ vector: vectorOf(1, 2), body: { list: [1] }, fields: { quality: 1 } });
    read!.vector![0] = 5;
    (read!.body as { list: number[] }).list.push(3);
    const [again] = await store.get('alpha', [idOf(1)]);
    expect(again).toMatchObject({ vector: vectorOf(1, 2), body: { list: [1] } });
  });

  test('[MS2] created stays, updated follows the clock, even backwards', async () => {
    const { store, clock } = await open();
    await store.put([recordOf(1)]);
    clock.ms -= 1000;
    expect(await store.put([recordOf(1)])).toEqual([{ id: idOf(1), version: 2 }]);
    const [record] = await store.get('alpha', [idOf(1)]);
    expect(record).toMatchObject({ createdMs: START_MS, updatedMs: START_MS - 1000, version: 2 });
    await store.put([recordOf(1, { createdMs: 5 })]);
    expect((await store.get('alpha', [idOf(1)]))[0]).toMatchObject({ createdMs: 5, version: 3 });
  });

  test('[MS3] another version than expected is a conflict, and nothing of the call is written', async () => {
    const { store } = await open();
    await store.put([recordOf(1, { ifVersion: 0 })]);
    await expectRefusal(store.put([recordOf(1, { ifVersion: 0 })]), 'conflict', 'has version 1, expected 0');
    await expectRefusal(store.put([recordOf(2), recordOf(1, { ifVersion: 2 })]), 'conflict', 'has version 1');
    await expectRefusal(store.put([recordOf(3, { ifVersion: 1 })]), 'conflict', 'has version 0, expected 1');
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(1);
    expect(await store.put([recordOf(2), recordOf(1, { ifVersion: 1 })])).toEqual([
      { id: idOf(2), version: 1 },
      { id: idOf(1), version: 2 },
    ]);
  });

  test('[MS3] of writers that come at once and expect the same version, one succeeds', async () => {
    const { store } = await open();
    const outcomes = await Promise.allSettled(
      Array.from({ length: 20 }, (_, i) => store.put([recordOf(1, { ifVersion: 0, body: i }), recordOf(100 + i)])),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(2);
    const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
    expect((await store.get('alpha', [idOf(1)]))[0]).toMatchObject({ version: 1, body: winner });
  });

  test('[MS3] a record keeps its kind', async () => {
    const { store } = await open();
    await store.put([recordOf(1)]);
    await expectRefusal(store.put([recordOf(1, { kind: 'concept' })]), 'conflict', 'not concept');
  });

  test('[MS4] deletes records with their edges and vectors, and nothing else', async () => {
    const { store, reopen } = await open();
    await store.put([1, 2, 3].map((i) => recordOf(i, { vector: vectorOf(1, i), space: 's' })));
    await store.putEdges('alpha', [
      { from: idOf(1), to: idOf(2), relation: 'a', weight: 1, confidence: 1 },
      { from: idOf(2), to: idOf(3), relation: 'a', weight: 1, confidence: 1 },
      { from: idOf(3), to: idOf(1), relation: 'a', weight: 1, confidence: 1 },
    ]);
    const near = { kinds: ['fact'], vector: vectorOf(1, 2), space: 's', k: 10 } as const;
    expect(await store.nearest('alpha', near)).toHaveLength(3);
    expect(await store.delete('alpha', [idOf(2), idOf(2), idOf(9)])).toBe(1);
    expect(await store.delete('alpha', [idOf(2)])).toBe(0);
    const check = async (current: MemoryStore): Promise<void> => {
      expect(await current.get('alpha', [idOf(2)])).toEqual([null]);
      const found = await current.nearest('alpha', near);
      expect(found.map(({ record }) => record.id).sort()).toEqual([idOf(1), idOf(3)]);
      const edges = await current.edgesOf('alpha', { ids: [idOf(1), idOf(2), idOf(3)], direction: 'both', limit: 9 });
      expect(edges.map(({ from, to }) => [from, to])).toEqual([[idOf(3), idOf(1)]]);
      expect(await current.stats('alpha')).toMatchObject({ numRecords: { fact: 2 }, numEdges: 1, numVectors: 2 });
      await current.checkIntegrity();
    };
    await check(store);
    if (reopen !== null) await check(await reopen());
  });

  test('[MS5] expired records are there until they are swept, oldest first and no more than asked for', async () => {
    const { store } = await open();
    await store.put([
      ...[1, 2, 3].map((i) => recordOf(i, { expiresMs: 1000 * i, tenant: i === 1 ? 'beta' : 'alpha' })),
      recordOf(4),
    ]);
    expect(await store.sweepExpired(999, 10)).toBe(0);
    expect(await store.sweepExpired(2000, 1)).toBe(1);
    expect(await store.get('beta', [idOf(1)])).toEqual([null]);
    expect((await store.get('alpha', [idOf(2)]))[0]).not.toBeNull();
    expect(await store.sweepExpired(2000, 10)).toBe(1);
    expect(await store.sweepExpired(2000, 10)).toBe(0);
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(2);
    await store.checkIntegrity();
  });

  test('[MS6] a store that was closed refuses everything, and closes again', async () => {
    const { store } = await open();
    await store.put([recordOf(1)]);
    await store.close();
    await store.close();
    const calls = [
      store.put([recordOf(2)]),
      store.get('alpha', [idOf(1)]),
      store.find('alpha', { kinds: ['fact'], order: 'newest', limit: 1 }),
      store.count('alpha', { kinds: ['fact'] }),
      store.nearest('alpha', { kinds: ['fact'], vector: vectorOf(1), space: 's', k: 1 }),
      store.delete('alpha', [idOf(1)]),
      store.putEdges('alpha', [{ from: idOf(1), to: idOf(1), relation: 'r', weight: 1, confidence: 1 }]),
      store.edgesOf('alpha', { ids: [idOf(1)], direction: 'both', limit: 1 }),
      store.deleteEdges('alpha', []),
      store.sweepExpired(1, 1),
      store.eraseTenant('alpha'),
      store.stats(null),
      store.checkIntegrity(),
    ];
    for (const call of calls) await expectRefusal(call, 'io', 'closed');
  });
}
