import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { campaign } from '../../../test/support/campaign.ts';
import { MEMORY_FIELDS } from '../fields.ts';
import {
  AUDIT_KIND,
  type FieldCondition,
  type FieldValue,
  type FindQuery,
  type FoundPage,
  type MemoryStore,
  type RecordFilter,
  type RecordKind,
} from '../types.ts';
import { checkCount } from './check-query.ts';
import { passesFilter } from './filter.ts';
import { expectRefusal, idOf, recordOf, START_MS, type OpenStore } from './store-setup.contract.ts';

const numberOf = (id: string): number => Number.parseInt(id.slice(-12), 16);

async function findIds(store: MemoryStore, query: Partial<FindQuery>): Promise<number[]> {
  const page = await store.find('alpha', { kinds: ['fact'], order: 'oldest', limit: 100, ...query });
  return page.records.map(({ id }) => numberOf(id));
}

export function testQueries(open: OpenStore): void {
  test('[MS7] conditions of every kind', async () => {
    const { store } = await open();
    await store.put([
      recordOf(1, { kind: AUDIT_KIND, createdMs: 100, fields: { quality: 0.1, hasError: true, model: 'a' } }),
      recordOf(2, { kind: AUDIT_KIND, createdMs: 200, fields: { quality: 0.5, hasError: false, model: 'b' } }),
      recordOf(3, { kind: AUDIT_KIND, createdMs: 300, fields: { quality: 0.9, model: 'a', sessionId: 'a' } }),
      recordOf(4, { kind: AUDIT_KIND, createdMs: 400, fields: { quality: null, hasError: null } }),
      recordOf(5, { kind: 'session', createdMs: 250, fields: { sessionId: 'a', turnCount: 3 } }),
    ]);
    const find = (filter: RecordFilter, kinds: RecordKind[] = [AUDIT_KIND]): Promise<number[]> =>
      findIds(store, { kinds, filter });
    const by = (...fields: FieldCondition[]): Promise<number[]> => find({ fields });
    expect(await find({})).toEqual([1, 2, 3, 4]);
    expect(await find({ createdFromMs: 200, createdToMs: 400 })).toEqual([2, 3]);
    expect(await find({ createdFromMs: 0 })).toEqual([1, 2, 3, 4]);
    expect(await by({ field: 'quality', is: '=', value: 0.5 })).toEqual([2]);
    expect(await by({ field: 'quality', is: '!=', value: 0.5 })).toEqual([1, 3, 4]);
    expect(await by({ field: 'quality', is: '<', value: 0.5 })).toEqual([1]);
    expect(await by({ field: 'quality', is: '<=', value: 0.5 })).toEqual([1, 2]);
    expect(await by({ field: 'quality', is: '>', value: 0.5 })).toEqual([3]);
    expect(await by({ field: 'quality', is: '>=', value: 0.5 })).toEqual([2, 3]);
    expect(await by({ field: 'quality', is: 'in', values: [0.1, 0.9, 7] })).toEqual([1, 3]);
    expect(await by({ field: 'quality', is: 'in', values: [0.1, null] })).toEqual([1, 4]);
    expect(await by({ field: 'quality', is: '=', value: null })).toEqual([4]);
    expect(await by({ field: 'quality', is: '!=', value: null })).toEqual([1, 2, 3]);
    expect(await by({ field: 'hasError', is: '=', value: true })).toEqual([1]);
    expect(await by({ field: 'hasError', is: '=', value: false })).toEqual([2]);
    expect(await by({ field: 'hasError', is: '=', value: null })).toEqual([3, 4]);
    expect(await by({ field: 'model', is: '=', value: 'a' })).toEqual([1, 3]);
    expect(await by({ field: 'model', is: '!=', value: 'a' })).toEqual([2, 4]);
    expect(await by({ field: 'model', is: 'in', values: ['b', 'c', null] })).toEqual([2, 4]);
    expect(await by({ field: 'model', is: '=', value: 'A' })).toEqual([]);
    // The same word in another field is something else.
    expect(await by({ field: 'sessionId', is: '=', value: 'a' })).toEqual([3]);
    const both: FieldCondition[] = [{ field: 'model', is: '=', value: 'a' }, { field: 'quality', is: '>', value: 0.2 }]; // prettier-ignore
    expect(await by(...both)).toEqual([3]);
    const session = { fields: [{ field: 'sessionId', is: '=', value: 'a' }] } as const;
    expect(await find(session, [AUDIT_KIND, 'session'])).toEqual([5, 3]);
    // A kind without the field has null there.
    const noModel = { fields: [{ field: 'model', is: '=', value: null }] } as const;
    expect(await find(noModel, ['session', AUDIT_KIND])).toEqual([5, 4]);
    expect(await store.count('alpha', { kinds: [AUDIT_KIND], filter: { fields: both } })).toBe(1);
    expect(await store.count('alpha', { kinds: [AUDIT_KIND, 'session'], filter: session })).toBe(2);
  });

  test('[MS7] any filter finds the matching records', async () => {
    const { store } = await open();
    const numbers = [0, 1, -1, 0.1, 0.1 + 0.2, 1e-300, 2 ** 53, 123456789.123456, 1e21, null];
    const words = ['', 'a', 'b', 'ü', null];
    const records = Array.from({ length: 60 }, (_, i) =>
      recordOf(i, {
        kind: AUDIT_KIND,
        createdMs: 1000 + (i % 7),
        fields: {
          quality: numbers[i % numbers.length]!,
          totalMs: i / 3,
          hasError: [true, false, null][i % 3]!,
          model: words[i % words.length]!,
        },
      }),
    );
    await store.put(records);
    const value = (list: readonly FieldValue[]) => fc.constantFrom(...list);
    const condition = fc.oneof(
      fc.record({ field: fc.constant('quality'), is: fc.constantFrom('=', '!='), value: value(numbers) }),
      fc.record({ field: fc.constant('quality'), is: fc.constantFrom('<', '<=', '>', '>='), value: value(numbers.slice(0, -1)) }), // prettier-ignore
      fc.record({ field: fc.constant('totalMs'), is: fc.constantFrom('<', '>=', '='), value: value([0, 1 / 3, 7 / 3, 5, 100]) }), // prettier-ignore
      fc.record({ field: fc.constant('model'), is: fc.constantFrom('=', '!='), value: value(words) }),
      fc.record({ field: fc.constant('hasError'), is: fc.constantFrom('=', '!='), value: value([true, false, null]) }),
      fc.record({ field: fc.constant('model'), is: fc.constant('in'), values: fc.array(value(words), { minLength: 1, maxLength: 3 }) }), // prettier-ignore
      fc.record({ field: fc.constant('quality'), is: fc.constant('in'), values: fc.array(value(numbers), { minLength: 1, maxLength: 3 }) }), // prettier-ignore
    ) as fc.Arbitrary<FieldCondition>;
    const time = fc.option(fc.integer({ min: 999, max: 1008 }), { nil: undefined });
    await fc.assert(
      fc.asyncProperty(fc.array(condition, { maxLength: 3 }), time, time, async (fields, from, to) => {
        const filter: RecordFilter = { fields, ...(from === undefined ? {} : { createdFromMs: from }), ...(to === undefined ? {} : { createdToMs: to }) }; // prettier-ignore
        const checked = checkCount({ kinds: [AUDIT_KIND], filter }, MEMORY_FIELDS);
        const expected = records.filter((record) => passesFilter({ ...record, createdMs: record.createdMs! }, checked));
        const found = await findIds(store, { kinds: [AUDIT_KIND], filter });
        expect(found.toSorted((a, b) => a - b)).toEqual(expected.map(({ id }) => numberOf(id)));
        expect(await store.count('alpha', { kinds: [AUDIT_KIND], filter })).toBe(expected.length);
      }),
      { numRuns: campaign({ short: 40, long: 600 }) },
    );
  });

  test('[MS8] refuses undeclared fields and values of another type in puts and filters', async () => {
    const { store } = await open();
    await expectRefusal(
      store.put([recordOf(1, { fields: { colour: 'red' } })]),
      'invalid_option',
      'unknown option "colour"',
    );
    await expectRefusal(store.put([recordOf(1, { fields: { quality: 'high' } })]), 'invalid_option', 'quality');
    await expectRefusal(store.put([recordOf(1, { fields: { quality: Number.NaN } })]), 'invalid_option', 'quality');
    await expectRefusal(store.put([recordOf(1, { fields: { source: 1 } })]), 'invalid_option', 'source');
    const refused: FieldCondition[] = [
      { field: 'colour', is: '=', value: 'red' },
      { field: 'toString', is: '=', value: null },
      { field: 'quality', is: '=', value: 'x' },
      { field: 'quality', is: '<', value: Infinity },
      { field: 'source', is: '<', value: 1 },
      { field: 'source', is: 'in', values: [] },
      { field: 'source', is: '=' } as never,
      { field: 'source', is: 'like', value: 'x' } as never,
      { field: 'source', is: '=', value: 'x', or: 1 } as never,
    ];
    for (const condition of refused) {
      await expectRefusal(findIds(store, { filter: { fields: [condition] } }), 'invalid_option');
    }
    await expectRefusal(
      findIds(store, { filter: { before: 1 } as never }),
      'invalid_option',
      'unknown option "before"',
    );
    await expectRefusal(findIds(store, { kinds: [] }), 'invalid_option', 'kinds');
    await expectRefusal(findIds(store, { kinds: ['fact', 'fact'] }), 'invalid_option', 'twice');
    await expectRefusal(findIds(store, { kinds: ['dream' as never] }), 'invalid_option', '"kind" must be one of');
    await expectRefusal(findIds(store, { order: 'best' as never }), 'invalid_option', 'order');
  });

  test('[MS9] pages follow the order, and stay apart when records come in between', async () => {
    const { store, clock } = await open();
    // Every third has the same time as the one before: then the id decides.
    await store.put(Array.from({ length: 30 }, (_, i) => recordOf(2 * i + 1, { createdMs: 1000 + Math.floor(i / 3) })));
    const seen: number[] = [];
    let after: string | undefined;
    for (let page = 0; ; page++) {
      const { records, next } = await store.find('alpha', { kinds: ['fact', 'concept'], order: 'newest', limit: 7, ...(after === undefined ? {} : { after }) }); // prettier-ignore
      seen.push(...records.map(({ id }) => numberOf(id)));
      if (next === null) break;
      expect(records).toHaveLength(7);
      after = next;
      await store.put([recordOf(1001 + page, { createdMs: clock.ms })]); // newer than all
      await store.put([recordOf(2001 + page, { createdMs: 10 - page, kind: 'concept' })]); // older than all: on the last page
      await store.delete('alpha', [records[3]!.id]);
    }
    const old = [2001, 2002, 2003, 2004].map((i) => i);
    expect(seen).toEqual([...Array.from({ length: 30 }, (_, i) => 59 - 2 * i), ...old]);
    expect((await store.find('alpha', { kinds: ['fact'], order: 'newest', limit: 1 })).records[0]!.createdMs).toBe(START_MS); // prettier-ignore
    expect((await findIds(store, { limit: 3, filter: { createdToMs: 1001 } })).length).toBe(3);
    await expectRefusal(findIds(store, { after: 'nonsense' }), 'invalid_option', 'after');
    expect(await store.find('alpha', { kinds: ['fact'], order: 'oldest', limit: 5, after: `1000_${idOf(1)}` })).toMatchObject({ records: [{ id: idOf(3) }, { id: idOf(5) }, {}, {}, {}] }); // prettier-ignore
  });

  test('[MS9] within one millisecond the id decides, also between kinds', async () => {
    const { store } = await open();
    const numbers = [4, 9, 1, 7, 2, 10, 3, 8, 5, 6];
    await store.put(numbers.map((i) => recordOf(i, { createdMs: 5000, kind: i % 2 === 0 ? 'fact' : 'concept' })));
    for (const order of ['oldest', 'newest'] as const) {
      const seen: number[] = [];
      for (let next: string | null = ''; next !== null;) {
        const page: FoundPage = await store.find('alpha', { kinds: ['fact', 'concept'], order, limit: 3, ...(next === '' ? {} : { after: next }) }); // prettier-ignore
        seen.push(...page.records.map(({ id }) => numberOf(id)));
        ({ next } = page);
      }
      const sorted = numbers.toSorted((a, b) => a - b);
      expect(seen).toEqual(order === 'oldest' ? sorted : sorted.toReversed());
    }
  });
}
