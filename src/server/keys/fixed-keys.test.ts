import { expect, test } from 'vitest';
import { createMemoryKeys, createTestServer } from '../../../test/support/test-server.ts';
import { withFixedKeys } from './fixed-keys.ts';
import { createKeyStore } from './key-store.ts';

test('a fixed key opens every route besides the stored keys; others are rejected', async () => {
  const stored = createKeyStore(createMemoryKeys(), () => 1000);
  const { token } = await stored.create({ name: 'a', tenant: 'alice', scopes: ['inference'] });
  const keys = withFixedKeys(stored, ['first', 'second']);
  const server = createTestServer([], { keys, isOpen: false });
  const ask = async (key: string | null): Promise<number> => {
    const headers = key === null ? {} : { authorization: `Bearer ${key}` };
    return (await server.fetch(new Request('http://localhost/v1/whoami', { headers }))).status;
  };
  expect(await Promise.all(['first', 'second', token].map(ask))).toEqual([200, 200, 200]);
  expect(await Promise.all([null, '', 'firs', 'first ', 'firstsecond', token.slice(0, -1)].map(ask))).toEqual(
    [401, 401, 401, 200, 401, 401], // white space around a token is not part of it
  );
  expect(await keys.verify('second')).toMatchObject({
    tenant: 'local',
    scopes: ['inference', 'admin', 'read-only', 'download'],
  });
  expect(keys.list()).toHaveLength(1);
  await server.shutDown(0);
});
