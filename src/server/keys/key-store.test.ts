import { expect, test } from 'vitest';
import { createMemoryKeys } from '../../../test/support/test-server.ts';
import { isSameText, parseToken } from './key-secret.ts';
import { createKeyStore, type KeyRecord, type NewKey } from './key-store.ts';

const KEY: NewKey = { name: 'laptop', tenant: 'alice', scopes: ['inference'] };

function createStore() {
  const map = new Map<string, KeyRecord>();
  let nowMs = 1000;
  return { map, store: createKeyStore(createMemoryKeys(map), () => nowMs++) };
}

test('[K1] a token identifies its key, and the stored record does not contain it', async () => {
  const { map, store } = createStore();
  const { key, token } = await store.create({ ...KEY, scopes: ['admin', 'inference', 'admin'] });
  expect(key).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{18}$/),
    name: 'laptop',
    tenant: 'alice',
    scopes: ['inference', 'admin'],
    createdMs: 1000,
    revokedMs: null,
  });
  expect(await store.verify(token)).toEqual(key);
  const kept = JSON.stringify([...map.values()]);
  expect(kept).not.toContain(parseToken(token)!.secret);
  expect(kept).not.toContain(Buffer.from(parseToken(token)!.secret, 'base64url').toString('hex'));
  expect(JSON.stringify(store.list())).not.toContain(map.get(key.id)!.hash);
});

test('[K1] the same secret with another salt has another hash', async () => {
  const { map, store } = createStore();
  const a = await store.create(KEY);
  const b = await store.create(KEY);
  const { salt, hash } = map.get(b.key.id)!;
  // Secret and hash are valid, but the salt is of another key.
  map.set(a.key.id, { ...map.get(a.key.id)!, salt });
  expect(await store.verify(a.token)).toBeNull();
  expect(new Set([hash, map.get(a.key.id)!.hash]).size).toBe(2);
});

test('[K2] rejects a wrong secret, a wrong id, and a changed or truncated token', async () => {
  const { store } = createStore();
  const { token } = await store.create(KEY);
  const other = (await store.create(KEY)).token;
  const mixed = `${other.slice(0, 23)}${token.slice(23)}`;
  const changed = token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A');
  for (const bad of [mixed, changed, token.slice(0, -1), `${token}A`, '', 'rvk__', ` ${token}`, token.toUpperCase()]) {
    expect(await store.verify(bad), bad).toBeNull();
  }
});

test('[K3] rejects a revoked key at once and permanently', async () => {
  const { store } = createStore();
  const { key, token } = await store.create(KEY);
  expect(store.revoke(key.id)).toEqual({ ...key, revokedMs: 1001 });
  expect(await store.verify(token)).toBeNull();
  expect(store.revoke(key.id)).toEqual({ ...key, revokedMs: 1001 });
  expect(store.revoke('0'.repeat(18))).toBeNull();
});

test('validates names, tenants and scopes', async () => {
  const { store } = createStore();
  for (const bad of [
    { name: '' },
    { tenant: '' },
    { tenant: 'x'.repeat(257) },
    { tenant: 'ruvllm' },
    { scopes: [] },
    { scopes: ['root'] },
  ]) {
    await expect(store.create({ ...KEY, ...bad } as NewKey)).rejects.toMatchObject({ code: 'invalid_option' });
  }
  expect(store.list()).toEqual([]);
});

test('texts are equal only if every character is', () => {
  expect(isSameText('abc', 'abc')).toBe(true);
  for (const [a, b] of [
    ['abc', 'abd'],
    ['abc', 'xbc'],
    ['abc', 'ab'],
    ['ab', 'abc'],
    ['', 'a'],
    ['a', ''],
    ['a\0', 'a'],
  ]) {
    expect(isSameText(a!, b!), `${a} ${b}`).toBe(false);
  }
});
