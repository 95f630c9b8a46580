import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type CacheNamespace, decodeNamespace, encodeNamespace, namespaceId } from './cache-namespace.ts';

const base: CacheNamespace = { tenant: 'a', modelHash: 'm', adapterHash: null, policy: 'f16' };

test('a difference in any field or field boundary gives another namespace', () => {
  const others: Partial<CacheNamespace>[] = [
    { tenant: 'b' },
    { tenant: 'am', modelHash: '' },
    { tenant: '', modelHash: 'am' },
    { modelHash: 'n' },
    { adapterHash: '' },
    { adapterHash: 'f', policy: '16' },
    { adapterHash: 'x' },
    { policy: 'f16+q8' },
  ];
  const ids = [base, ...others.map((other) => ({ ...base, ...other }))].map(namespaceId);
  expect(new Set(ids).size).toBe(ids.length);
  expect(namespaceId({ ...base })).toBe(ids[0]);
});

test('no two namespaces have the same bytes', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\u0000', '\u0001', 'é'), maxLength: 6 });
  const namespace = fc.record({ tenant: text, modelHash: text, adapterHash: fc.option(text), policy: text });
  fc.assert(
    fc.property(namespace, namespace, (one, other) => {
      const isSame = Buffer.compare(encodeNamespace(one), encodeNamespace(other)) === 0;
      expect(isSame).toBe(JSON.stringify(one) === JSON.stringify(other));
    }),
    { numRuns: 2000, seed: 4 },
  );
});

test('rejects fields that are too long or not valid Unicode', () => {
  expect(() => encodeNamespace({ ...base, tenant: 'é'.repeat(513) })).toThrow(
    expect.objectContaining({ code: 'invalid_option', message: '"tenant" has 1026 bytes, the limit is 1024' }),
  );
  expect(encodeNamespace({ ...base, tenant: 'é'.repeat(512) }).length).toBeGreaterThan(1024);
  expect(() => encodeNamespace({ ...base, tenant: 'a\ud800' })).toThrow(/"tenant" is not valid Unicode/);
});

test('parses a namespace string back and returns null for other names', () => {
  const text = fc.string({ unit: 'binary', maxLength: 40 });
  const namespace = fc.record({ tenant: text, modelHash: text, adapterHash: fc.option(text), policy: text });
  fc.assert(
    fc.property(namespace, (one) => {
      const id = namespaceId(one);
      expect(decodeNamespace(id)).toEqual(one);
      expect(decodeNamespace(id.slice(0, -1))).toBeNull();
      expect(decodeNamespace(`${id}0`)).toBeNull();
    }),
  );
  for (const other of ['', '0', '17', '4711']) expect(decodeNamespace(other)).toBeNull();
});

test('a name whose fields are cut or numbered otherwise is no namespace', () => {
  const id = namespaceId({ tenant: 'ab', modelHash: 'm', adapterHash: null, policy: 'p' });
  for (let length = 0; length < id.length; length++) expect(decodeNamespace(id.slice(0, length))).toBeNull();
  expect(decodeNamespace(`${id}x`)).toBeNull();
  for (const at of [0, 6, 11, 15]) {
    const other = `${id.slice(0, at)}\x07${id.slice(at + 1)}`;
    expect([at, decodeNamespace(other)]).toEqual([at, null]);
  }
});
