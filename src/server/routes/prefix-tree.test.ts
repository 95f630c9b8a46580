import { beforeEach, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createKeyStore, type KeyScope, type KeyStore } from '../keys/key-store.ts';

let server: TestServer;
let keys: KeyStore;

beforeEach(async () => {
  const { model } = await createToyRuntime();
  keys = createKeyStore(createMemoryKeys(), () => 1000);
  server = createTestServer([entryOf('toy', async () => model), entryOf('other', async () => model)], {
    keys,
    isOpen: false,
  });
});

const keyOf = async (tenant: string, ...scopes: KeyScope[]): Promise<string> =>
  (await keys.create({ name: tenant, tenant, scopes })).token;

const get = (path: string, token: string): Promise<Response> =>
  server.fetch(new Request(`http://localhost${path}`, { headers: { authorization: `Bearer ${token}` } }));

async function chat(token: string, content: string): Promise<void> {
  const body = { model: 'toy', messages: [{ role: 'user', content }], max_tokens: 4, ignore_eos: true };
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const url = 'http://localhost/v1/chat/completions';
  const response = await server.fetch(new Request(url, { method: 'POST', headers, body: JSON.stringify(body) }));
  expect(response.status).toBe(200);
}

interface Tree {
  readonly model: string;
  readonly is_complete: boolean;
  readonly nodes: readonly { tenant: string; hits: number; text: string; bytes: number; num_tokens: number }[];
}
const tree = async (token: string, query = ''): Promise<Tree> =>
  (await (await get(`/admin/prefix-tree${query}`, token)).json()) as Tree;

test('[PT1] shows shared prefixes as text with their number of uses', async () => {
  const alice = await keyOf('alice', 'inference');
  const words = 'the quick brown fox jumps over the lazy dog';
  await chat(alice, words);
  const before = await tree(alice);
  expect(before).toMatchObject({ object: 'prefix_tree', model: 'toy', is_complete: true });
  expect(before.nodes[0]).toMatchObject({ parent: null, depth: 0, start_token: 0, hits: 0, tenant: 'alice' });
  expect(before.nodes[0]!.text).toContain('the quick brown fox');
  expect(before.nodes[0]!.bytes).toBeGreaterThan(0);
  await chat(alice, words);
  expect((await tree(alice)).nodes[0]!.hits).toBe(1);
  expect((await tree(alice, '?limit=1')).nodes).toHaveLength(1);
});

test('[PT2] only administrators see prefixes of other tenants', async () => {
  const [alice, bob, root] = [
    await keyOf('alice', 'inference'),
    await keyOf('bob', 'inference', 'read-only'),
    await keyOf('carol', 'admin'),
  ];
  await chat(alice, 'a secret of alice that is long enough');
  await chat(bob, 'bob has other things to talk about');
  const tenants = ({ nodes }: Tree): string[] => [...new Set(nodes.map(({ tenant }) => tenant))].sort();
  expect(tenants(await tree(bob))).toEqual(['bob']);
  expect(JSON.stringify(await tree(bob))).not.toContain('secret');
  expect(tenants(await tree(root))).toEqual(['alice', 'bob']);
  expect(tenants(await tree(root, '?tenant=alice'))).toEqual(['alice']);
  expect(tenants(await tree(root, '?tenant=nobody'))).toEqual([]);
  const refused = await get('/admin/prefix-tree?tenant=alice', bob);
  expect(refused.status).toBe(403);
  expect((await get('/admin/prefix-tree?tenant=bob', bob)).status).toBe(200);
});

test('[PT3] loads no model, and validates its options', async () => {
  const token = await keyOf('alice', 'inference');
  expect((await get('/admin/prefix-tree', token)).status).toBe(409);
  expect((await get('/admin/prefix-tree?model=other', token)).status).toBe(409);
  expect(server.services.models.list().map(({ state }) => state)).toEqual(['unloaded', 'unloaded']);
  for (const [query, status] of [
    ['?model=none', 404],
    ['?depth=0', 400],
    ['?depth=65', 400],
    ['?limit=1001', 400],
    ['?limit=-1', 400],
    ['?nodes=5', 400],
    [`?model=${'x'.repeat(513)}`, 400],
  ] as const) {
    expect((await get(`/admin/prefix-tree${query}`, token)).status, query).toBe(status);
  }
});
