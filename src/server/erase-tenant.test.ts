import { expect, test } from 'vitest';
import { openTestMemory } from '../../test/support/test-memory.ts';
import { createMemoryKeys, createTestServer, entryOf } from '../../test/support/test-server.ts';
import { createToyRuntime } from '../../test/support/toy-runtime.ts';
import { createKeyStore } from './keys/key-store.ts';

const PROMPT = 'a b c d e f g h i j k l m n o p q r s t u v w x y z a b c d e f g h i j k l m n';

async function open(limits: object = {}) {
  const { model } = await createToyRuntime();
  const keys = createKeyStore(createMemoryKeys(), () => 1000);
  const server = createTestServer([entryOf('toy', async () => model)], {
    keys,
    isOpen: false,
    memory: await openTestMemory(),
    limits,
  });
  const tokens: Record<string, string> = {};
  for (const tenant of ['alice', 'bob', 'root']) {
    const scopes = [tenant === 'root' ? ('admin' as const) : ('inference' as const)];
    tokens[tenant] = (await keys.create({ name: tenant, tenant, scopes })).token;
  }
  const call = async (who: string, path: string, body: object) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${tokens[who]!}` };
    const request = new Request(`http://localhost${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    const response = await server.fetch(request);
    return { status: response.status, body: (await response.json()) as Record<string, any> };
  };
  return {
    complete: (who: string) => call(who, '/v1/completions', { model: 'toy', prompt: PROMPT, max_tokens: 1 }),
    erase: (tenant: string) => call('root', `/admin/memory/tenants/erase?tenant=${tenant}`, { confirm: tenant }),
  };
}

test('[ER5] the request rate of an erased tenant starts again, and that of others does not', async () => {
  const { complete, erase } = await open({ requestsPerMinute: 1, burst: 1 });
  for (const who of ['alice', 'bob']) {
    expect([(await complete(who)).status, (await complete(who)).status]).toEqual([200, 429]);
  }
  expect((await erase('alice')).status).toBe(200);
  expect((await complete('alice')).status).toBe(200);
  expect((await complete('bob')).status).toBe(429);
});

test('[ER6] an erased tenant has no cached pages, and the others keep theirs', async () => {
  const { complete, erase } = await open();
  const cached = async (who: string): Promise<number> =>
    ((await complete(who)).body['usage'] as { prompt_tokens_details: { cached_tokens: number } }).prompt_tokens_details.cached_tokens; // prettier-ignore
  for (const who of ['alice', 'bob']) await complete(who);
  const before = await cached('alice');
  expect(before).toBeGreaterThan(0);
  expect((await erase('alice')).status).toBe(200);
  expect([await cached('alice'), await cached('bob')]).toEqual([0, before]);
});
