import { expect, test } from 'vitest';
import type { PutRecord } from '../types.ts';
import { STORE_LIMITS } from './limits.ts';
import { expectRefusal, idOf, recordOf, vectorOf, type OpenStore } from './store-setup.contract.ts';

export function testLimits(open: OpenStore): void {
  test('[MS16] more than one call may bring is refused, and nothing written', async () => {
    const { store } = await open();
    const put = (change: Partial<PutRecord>) => store.put([recordOf(1, change)]);
    const { bodyBytes, itemsPerCall, wordBytes, vectorLength, spaceBytes } = STORE_LIMITS;
    await expectRefusal(put({ body: 'x'.repeat(bodyBytes - 1) }), 'invalid_option', `body has ${bodyBytes + 1} bytes`);
    await expectRefusal(put({ body: 'ü'.repeat(bodyBytes / 2) }), 'invalid_option', `body has ${bodyBytes + 2} bytes`);
    let deep: PutRecord['body'] = 1;
    for (let i = 0; i < 100_000; i++) deep = [deep];
    await expectRefusal(put({ body: deep }), 'invalid_option', 'nested deeper than 64');
    await expectRefusal(put({ body: Array(200_001).fill(0) as number[] }), 'invalid_option', 'more than 200000 values');
    const many = Array.from({ length: itemsPerCall + 1 }, (_, i) => recordOf(i));
    await expectRefusal(store.put(many), 'invalid_option', 'records must be a list of 1 to 1000, got 1001');
    await expectRefusal(store.put([]), 'invalid_option', 'got 0');
    const heavy = Array.from({ length: 20 }, (_, i) => recordOf(i, { body: 'x'.repeat(bodyBytes - 10) }));
    await expectRefusal(store.put(heavy), 'invalid_option', 'more than 67108864 bytes');
    await expectRefusal(put({ fields: { source: 'x'.repeat(wordBytes + 1) } }), 'invalid_option', 'source');
    await expectRefusal(
      put({ vector: new Float32Array(vectorLength + 1).fill(1), space: 's' }),
      'invalid_option',
      '8192',
    );
    await expectRefusal(put({ vector: vectorOf(1), space: 's'.repeat(spaceBytes + 1) }), 'invalid_option', 'space');
    const ids = Array.from({ length: 1001 }, (_, i) => idOf(i));
    await expectRefusal(store.get('alpha', ids), 'invalid_option', 'ids must be a list of 0 to 1000, got 1001');
    await expectRefusal(store.delete('alpha', ids), 'invalid_option', 'ids');
    const find = (change: object) => store.find('alpha', { kinds: ['fact'], order: 'newest', limit: 1, ...change });
    for (const limit of [0, 1001, 1.5, Number.NaN]) await expectRefusal(find({ limit }), 'invalid_option', 'limit');
    const fields = Array.from({ length: 33 }, () => ({ field: 'quality', is: '=', value: 1 }));
    await expectRefusal(find({ filter: { fields } }), 'invalid_option', 'fields must be a list of 0 to 32');
    await expectRefusal(store.sweepExpired(1, 0), 'invalid_option', 'limit');
    await expectRefusal(store.sweepExpired(-1, 1), 'invalid_option', 'nowMs');
    expect(await store.stats(null)).toMatchObject({ numRecords: {} });
    expect(await store.get('alpha', [])).toEqual([]);
    await put({ body: 'x'.repeat(bodyBytes - 2), vector: new Float32Array(vectorLength).fill(1), space: 's' });
    expect((await store.get('alpha', [idOf(1)]))[0]!.body).toHaveLength(bodyBytes - 2);
  });

  test('[MS16] a malformed record is refused, and nothing of its call written', async () => {
    const malformed: [string, Partial<Record<keyof PutRecord | 'extra', unknown>>][] = [
      ['an id that is none', { id: 'abc' }],
      ['an id in upper case', { id: idOf(1).toUpperCase() }],
      ['a kind that is none', { kind: 'dream' }],
      ['something unknown', { extra: 1 }],
      ['a time before 1970', { createdMs: -1 }],
      ['half a millisecond', { expiresMs: 0.5 }],
      ['a time that is no number', { expiresMs: '1' }],
      ['no expiry at all', { expiresMs: undefined }],
      ['a negative version', { ifVersion: -1 }],
      ['undefined as body', { body: undefined }],
      ['undefined deep in the body', { body: { a: [undefined] } }],
      ['NaN in the body', { body: { a: [Number.NaN] } }],
      ['a function in the body', { body: () => 1 }],
      ['a date in the body', { body: new Date() }],
      ['a map in the body', { body: new Map() }],
      ['a bigint in the body', { body: 1n }],
      ['no fields', { fields: null }],
    ];
    const { store } = await open();
    for (const [what, change] of malformed) {
      const put = store.put([recordOf(2), recordOf(1, change as never)]);
      await expect(put, what).rejects.toMatchObject({ name: 'RuvLLMError', code: 'invalid_option' });
    }
    expect(await store.get('alpha', [idOf(2)])).toEqual([null]);
  });

  test('[MS16] the same record twice in one call is refused', async () => {
    const { store } = await open();
    await expectRefusal(store.put([recordOf(1), recordOf(1)]), 'invalid_option', 'occurs twice');
    await store.put([recordOf(1), recordOf(1, { tenant: 'beta' })]);
  });
}
