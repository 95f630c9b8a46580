import { expect, test } from 'vitest';
import type { Model } from '../model.ts';
import { adaptersOfLease, createAdapterScales } from './adapter-scales.ts';

const modelWith = (...adapters: readonly { name: string; tenant: string | null }[]): Model =>
  ({ adapters: () => adapters }) as unknown as Model;

const LEGAL = { name: 'legal', scale: 0.5 };
const MODEL = modelWith({ name: 'other', tenant: null }, { name: 'legal', tenant: null });

test('the adapters of all requests are those that were set and are still loaded for all tenants', () => {
  const scales = createAdapterScales();
  expect(scales.get('a', MODEL)).toEqual([]);
  scales.set('a', [LEGAL, { name: 'gone', scale: 1 }]);
  expect(scales.get('a', MODEL)).toEqual([LEGAL]);
  expect(scales.get('b', MODEL)).toEqual([]);
  expect(scales.get('a', modelWith({ name: 'legal', tenant: 'acme' }))).toEqual([]);
});

test('the adapter in the name of the model wins; without adapters there are none', () => {
  const scales = createAdapterScales();
  const lease = { id: 'a', model: MODEL, adapter: null };
  expect(adaptersOfLease(lease, undefined)).toBeNull();
  expect(adaptersOfLease(lease, scales)).toBeNull();
  scales.set('a', [LEGAL]);
  expect(adaptersOfLease(lease, scales)).toEqual([LEGAL]);
  expect(adaptersOfLease({ ...lease, adapter: 'own' }, scales)).toBe('own');
  expect(adaptersOfLease({ ...lease, adapter: 'own' }, undefined)).toBe('own');
});
