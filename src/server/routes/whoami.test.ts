import { expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createTestLearning } from '../../runtime/learning/operations/harness.contract.ts';
import { createModelFiles } from '../../node/server/model-files.ts';
import { createKeyStore, KEY_SCOPES, type KeyScope } from '../keys/key-store.ts';

const ask = (token?: string): Request =>
  new Request('http://localhost/v1/whoami', {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
  });

test('[W1] reports the key and the allowed route scopes for every set of scopes', async () => {
  const { model } = await createToyRuntime();
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const { memory, learning } = await createTestLearning({}, 'toy');
  const { fetch } = createTestServer([entryOf('toy', async () => model)], {
    keys,
    isOpen: false,
    memory,
    learning,
    modelFiles: createModelFiles(),
  });
  const sets: [KeyScope[], object][] = [
    [['read-only'], { read: true, write: false, operate: true, download: false, admin: false }],
    [['inference'], { read: true, write: true, operate: false, download: false, admin: false }],
    [['inference', 'read-only'], { read: true, write: true, operate: true, download: false, admin: false }],
    [['inference', 'download'], { read: true, write: true, operate: false, download: true, admin: false }],
    [['admin'], { read: true, write: true, operate: true, download: true, admin: true }],
  ];
  for (const [scopes, allows] of sets) {
    const { key, token } = await keys.create({ name: 'desk', tenant: 'alice', scopes });
    expect(await (await fetch(ask(token))).json()).toEqual({
      object: 'whoami',
      key: { id: key.id, name: 'desk', created: 1 },
      tenant: 'alice',
      scopes: key.scopes,
      allows,
      is_open: false,
      version: '0.0.0',
      started: expect.any(Number) as number,
      parts: { memory: true, learning: true, routing: false, catalog: false },
      has_models: true,
      route_alias: null,
    });
  }
});

test('[W1] an open server reports that it allows everything', async () => {
  const { model } = await createToyRuntime();
  const { fetch } = createTestServer([entryOf('toy', async () => model)]);
  expect(await (await fetch(ask())).json()).toMatchObject({
    key: null,
    tenant: 'local',
    scopes: KEY_SCOPES,
    // No model files are served here.
    allows: { read: true, write: true, operate: true, download: false, admin: true },
    is_open: true,
    parts: { memory: false, learning: false, routing: false, catalog: false },
  });
});
