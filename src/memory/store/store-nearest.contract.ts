import { expect, test } from 'vitest';
import { createRandom } from '../../core/random.ts';
import type { FieldCondition } from '../types.ts';
import { cosine } from './brute-force.contract.ts';
import { directionOf, expectRefusal, idOf, recordOf, vectorOf, type OpenStore } from './store-setup.contract.ts';

export function testNearest(open: OpenStore): void {
  test('[MS10] the nearest are those of a scan, with and without a filter', async () => {
    const { store, reopen } = await open();
    const records = Array.from(
      { length: 200 },
      (_, i) =>
      recordOf(i, { kind: i % 4 === 0 ? 'concept' : 'fact', fields: { quality: i % 10 }, vector: directionOf(i), space: 's' }), // prettier-ignore
    );
    await store.put(records);
    const random = createRandom(7);
    const check = async (current: typeof store, query: Float32Array, minQuality: number | null): Promise<void> => {
      const fields: FieldCondition[] = minQuality === null ? [] : [{ field: 'quality', is: '>=', value: minQuality }];
      for (const kinds of [['fact'], ['fact', 'concept']] as const) {
        const passing = records.filter(
          ({ kind, fields: { quality } }) =>
            (kinds as readonly string[]).includes(kind) && (quality as number) >= (minQuality ?? 0),
        );
        const expected = passing
          .map((record) => ({ id: record.id, similarity: cosine(query, record.vector!) }))
          .sort((a, b) => b.similarity - a.similarity)
          .slice(0, 12);
        const found = await current.nearest('alpha', { kinds, vector: query, space: 's', k: 12, ef: 200, filter: { fields } }); // prettier-ignore
        expect(found.map(({ record }) => record.id)).toEqual(expected.map(({ id }) => id));
        found.forEach(({ similarity }, i) => expect(similarity).toBeCloseTo(expected[i]!.similarity, 5));
      }
    };
    const queries = Array.from({ length: 8 }, () => directionOf(1000 * random.next()));
    for (const query of queries) for (const quality of [null, 5, 9]) await check(store, query, quality);
    // 20 records have the quality 9: all of them come when so many are asked for.
    const all = await store.nearest('alpha', { kinds: ['fact', 'concept'], vector: queries[0]!, space: 's', k: 30, filter: { fields: [{ field: 'quality', is: '=', value: 9 }] } }); // prettier-ignore
    expect(all).toHaveLength(20);
    if (reopen !== null) await check(await reopen(), queries[0]!, 5);
  });

  test('[MS10] a vector that is replaced, taken away or moved to another space is found where it is now', async () => {
    const { store, reopen } = await open();
    const put = (i: number, vector: Float32Array | null, space: string | null) =>
      store.put([recordOf(i, { vector, space })]);
    let current = store;
    const near = async (space: string): Promise<string[]> => {
      const found = await current.nearest('alpha', { kinds: ['fact'], vector: vectorOf(1, 0), space, k: 5 });
      return found.map(({ record }) => record.id);
    };
    await put(1, vectorOf(1, 0), 's');
    await put(2, vectorOf(0.9, 0.1), 's');
    await put(3, vectorOf(0.5, 0.5), 's');
    expect(await near('s')).toEqual([idOf(1), idOf(2), idOf(3)]);
    expect(await near('other')).toEqual([]);
    await put(1, vectorOf(-1, 0.1), 's');
    expect(await near('s')).toEqual([idOf(2), idOf(3), idOf(1)]);
    await put(2, vectorOf(1, 0), 'other');
    await put(3, null, null);
    expect([await near('s'), await near('other')]).toEqual([[idOf(1)], [idOf(2)]]);
    await put(2, vectorOf(1, 0), 's');
    expect([await near('s'), await near('other')]).toEqual([[idOf(2), idOf(1)], []]);
    await store.checkIntegrity();
    if (reopen === null) return;
    current = await reopen();
    expect([await near('s'), await near('other')]).toEqual([[idOf(2), idOf(1)], []]);
    await current.checkIntegrity();
  });

  test('[MS33] returns the current record after a write, refusal, deletion or erasure', async () => {
    const { store } = await open();
    const near = async (tenant = 'alpha') =>
      (
        await store.nearest(tenant, { kinds: ['fact'], vector: vectorOf(1, 1), space: 's', k: 5, withVectors: false })
      ).map(({ record }) => [record.id, record.version, record.body]);
    const put = (i: number, note: string, more: object = {}) =>
      store.put([recordOf(i, { vector: vectorOf(1, i), space: 's', body: { note }, ...more })]);
    await put(1, 'first');
    await put(2, 'second');
    const both = [
      [idOf(1), 1, { note: 'first' }],
      [idOf(2), 1, { note: 'second' }],
    ];
    expect(await near()).toEqual(both);
    expect(await near()).toEqual(both);
    await expect(put(1, 'refused', { ifVersion: 7 })).rejects.toMatchObject({ code: 'conflict' });
    expect(await near()).toEqual(both);
    await put(1, 'again');
    expect(await near()).toEqual([[idOf(1), 2, { note: 'again' }], both[1]]);
    await store.delete('alpha', [idOf(1)]);
    expect(await near()).toEqual([both[1]]);
    // Its place may be taken by the next.
    await put(3, 'third');
    expect(await near()).toEqual([both[1], [idOf(3), 1, { note: 'third' }]]);
    await store.eraseTenant('alpha');
    expect(await near()).toEqual([]);
    await put(4, 'anew');
    expect(await near()).toEqual([[idOf(4), 1, { note: 'anew' }]]);
    expect(await near('beta')).toEqual([]);
  });

  test('[MS10] without vectors only the vector differs, and put refuses such a record', async () => {
    const { store } = await open();
    const record = recordOf(1, { fields: { source: 'a "quoted" wörd', quality: 0.5 }, body: { text: 'x' }, vector: vectorOf(3, 4), space: 's' }); // prettier-ignore
    await store.put([record, recordOf(2, { vector: vectorOf(1, 0), space: 's' })]);
    const query = { kinds: ['fact'], vector: vectorOf(3, 4), space: 's', k: 2 } as const;
    const whole = await store.nearest('alpha', { ...query, withVectors: true });
    expect(await store.nearest('alpha', query)).toEqual(whole);
    expect(whole.map(({ record: { vector } }) => vector)).toEqual([vectorOf(3, 4), vectorOf(1, 0)]);
    const light = await store.nearest('alpha', { ...query, withVectors: false });
    expect(light).toEqual(whole.map((hit) => ({ ...hit, record: { ...hit.record, vector: null } })));
    expect(light[0]!.record).toMatchObject({ id: idOf(1), space: 's', fields: record.fields, body: record.body });
    await expectRefusal(store.put([light[0]!.record]), 'invalid_option', 'both');
    expect((await store.get('alpha', [idOf(1)]))[0]!.vector).toEqual(vectorOf(3, 4));
    await expectRefusal(store.nearest('alpha', { ...query, withVectors: 'no' as never }), 'invalid_option', '"withVectors" must be true or false'); // prettier-ignore
  });

  test('[MS10] a recreated tenant has new sets', async () => {
    const { store } = await open();
    const near = (vector: Float32Array) => store.nearest('alpha', { kinds: ['fact'], vector, space: 's', k: 5 });
    await store.put([recordOf(1, { vector: vectorOf(1, 0), space: 's' })]);
    expect((await near(vectorOf(1, 0))).map(({ record }) => record.id)).toEqual([idOf(1)]);
    await store.eraseTenant('alpha');
    expect(await near(vectorOf(1, 0))).toEqual([]);
    await store.put([recordOf(2, { vector: vectorOf(0, 1, 0), space: 's' })]);
    expect((await near(vectorOf(0, 1, 0))).map(({ record }) => record.id)).toEqual([idOf(2)]);
  });

  test('[MS11] refuses vectors that cannot be compared', async () => {
    const { store } = await open();
    const put = (vector: Float32Array | null, space: string | null = 's') =>
      store.put([recordOf(1, { vector, space })]);
    await expectRefusal(put(vectorOf(1, Number.NaN)), 'invalid_option', 'vector[1] is NaN');
    await expectRefusal(put(vectorOf(Infinity, 1)), 'invalid_option', 'vector[0] is Infinity');
    await expectRefusal(put(vectorOf(0, 0)), 'invalid_option', 'cannot be compared');
    await expectRefusal(put(vectorOf(3e38, 3e38)), 'invalid_option', 'cannot be compared');
    await expectRefusal(put(vectorOf()), 'invalid_option', 'length of vector');
    await expectRefusal(put([1, 2] as never), 'invalid_option', 'Float32Array');
    await expectRefusal(put(vectorOf(1), null), 'invalid_option', 'both');
    await expectRefusal(put(null, 's'), 'invalid_option', 'both');
    await expectRefusal(put(vectorOf(1), ''), 'invalid_option', 'space');
    await put(vectorOf(1, 2));
    await expectRefusal(store.put([recordOf(2, { vector: vectorOf(1), space: 's' })]), 'invalid_option', 'length 1');
    const two = [recordOf(3, { vector: vectorOf(1), space: 'new' }), recordOf(4, { vector: vectorOf(1, 2), space: 'new' })]; // prettier-ignore
    await expectRefusal(store.put(two), 'invalid_option', 'length');
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(1);
    await store.put([recordOf(5, { vector: vectorOf(1), space: 's', kind: 'concept' })]); // a set of its own
    const near = (vector: Float32Array, change: object = {}) =>
      store.nearest('alpha', { kinds: ['fact'], vector, space: 's', k: 1, ...change });
    await expectRefusal(near(vectorOf(0, 0)), 'invalid_option', 'cannot be compared');
    await expectRefusal(near(vectorOf(1, Number.NaN)), 'invalid_option', 'NaN');
    await expectRefusal(near(vectorOf(1)), 'invalid_option', 'length 1');
    for (const k of [0, -1, 1.5, 1_000_000, Number.NaN]) {
      await expectRefusal(near(vectorOf(1, 1), { k }), 'invalid_option', '"k" must be an integer from 1 to 1000');
    }
    for (const ef of [0, 1e6]) await expectRefusal(near(vectorOf(1, 1), { ef }), 'invalid_option', '"ef" must be');
    await expectRefusal(near(vectorOf(1, 1), { top: 1 }), 'invalid_option', 'unknown option "top"');
  });
}
