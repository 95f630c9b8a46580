import { beforeEach, describe, expect, test, vi } from 'vitest';
import { createManualClock, settle } from '../../../test/support/manual-clock.ts';
import { createMemoryKeys, createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { createKeyStore, type KeyScope, type KeyStore } from '../keys/key-store.ts';

let server: TestServer;
let keys: KeyStore;
let model: Awaited<ReturnType<typeof createToyRuntime>>['model'];

async function keyOf(tenant: string, ...scopes: KeyScope[]): Promise<string> {
  return (await keys.create({ name: tenant, tenant, scopes })).token;
}

const get = (path: string, token: string): Promise<Response> =>
  server.fetch(new Request(`http://localhost${path}`, { headers: { authorization: `Bearer ${token}` } }));

const post = (path: string, token: string, body: object): Promise<Response> =>
  server.fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
  );

const chat = (token: string, more: object = {}): Promise<Response> => {
  const messages = [{ role: 'user', content: 'hi' }];
  return post('/v1/chat/completions', token, { model: 'toy', messages, max_tokens: 6, ignore_eos: true, ...more });
};

interface Live {
  readonly num_requests: number;
  readonly num_hidden: number;
  readonly requests: readonly { id: string; tenant: string; state: string; tokens: number; prompt_tokens: number }[];
  readonly models: readonly {
    id: string;
    engine: { batch: number } | null;
    pool: { budget_bytes: number; used_bytes: number; tiers: { tier: string; bytes: number }[] } | null;
    first_token_ms: { count: number } | null;
    inter_token_ms: { count: number } | null;
  }[];
}
const live = async (token: string): Promise<Live> => (await (await get('/admin/live', token)).json()) as Live;

beforeEach(async () => {
  ({ model } = await createToyRuntime());
  keys = createKeyStore(createMemoryKeys(), () => 1000);
  server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false });
});

/** The value of a line of `/metrics`. */
async function metric(token: string, line: string): Promise<number> {
  const text = await (await get('/metrics', token)).text();
  return Number(text.split('\n').find((one) => one.startsWith(`${line} `))!.slice(line.length + 1)); // prettier-ignore
}

describe('[L1] the snapshot', () => {
  test('contains running requests, their tokens so far, and the batch', async () => {
    const token = await keyOf('alice', 'inference', 'read-only');
    const response = await chat(token, { stream: true, max_tokens: 200 });
    const reader = response.body!.getReader();
    await reader.read();
    const { requests, num_requests: numRequests, models } = await live(token);
    expect(numRequests).toBe(1);
    expect(requests).toEqual([
      {
        id: response.headers.get('x-request-id'),
        tenant: 'alice',
        asked_model: 'toy',
        model: 'toy',
        state: 'generating',
        prompt_tokens: expect.any(Number) as number,
        cached_tokens: 0,
        tokens: expect.any(Number) as number,
        elapsed_ms: expect.any(Number) as number,
        first_token_ms: expect.any(Number) as number,
        node: 'localhost',
      },
    ]);
    expect(requests[0]!.tokens).toBeGreaterThan(0);
    expect(models[0]!.engine!.batch).toBe(1);
    await reader.cancel();
    while ((await model.stats()).numRunning > 0);
    expect(await live(token)).toMatchObject({ requests: [], num_requests: 0, num_hidden: 0 });
  });

  test('[K7] shows requests of other tenants to administrators only, and counts them for others', async () => {
    const [alice, bob, root] = [
      await keyOf('alice', 'inference'),
      await keyOf('bob', 'read-only'),
      await keyOf('carol', 'admin'),
    ];
    const response = await chat(alice, { stream: true, max_tokens: 200 });
    expect(await live(bob)).toMatchObject({ requests: [], num_requests: 1, num_hidden: 1 });
    expect(await live(root)).toMatchObject({ requests: [{ tenant: 'alice' }], num_hidden: 0 });
    expect((await get('/admin/live', alice)).status).toBe(403);
    await response.body!.cancel();
  });

  test('[L2] agrees with /metrics on pool, budget, tiers and number of measurements', async () => {
    const token = await keyOf('alice', 'inference', 'read-only');
    await chat(token);
    await chat(token, { n: 2 });
    const { models } = await live(token);
    const { pool, first_token_ms: firstToken, inter_token_ms: interToken } = models[0]!;
    expect(pool!.used_bytes).toBeGreaterThan(0);
    expect(pool!.used_bytes).toBe(await metric(token, 'ruvllm_pool_bytes{model="toy"}'));
    expect(pool!.budget_bytes).toBe(await metric(token, 'ruvllm_pool_budget_bytes{model="toy"}'));
    expect(pool!.tiers.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(pool!.used_bytes);
    for (const { tier, bytes } of pool!.tiers) {
      expect(bytes).toBe(await metric(token, `ruvllm_pool_tier_bytes{model="toy",tier="${tier}"}`));
    }
    expect(firstToken!.count).toBe(3);
    expect(firstToken!.count).toBe(await metric(token, 'ruvllm_time_to_first_token_seconds_count{model="toy"}'));
    expect(interToken!.count).toBe(15);
    expect(interToken!.count).toBe(await metric(token, 'ruvllm_inter_token_seconds_count{model="toy"}'));
  });

  test('a request that waits for its model is loading; a failed one is removed', async () => {
    const token = await keyOf('alice', 'inference', 'read-only');
    let fail = (_error: Error): void => {};
    server = createTestServer([entryOf('toy', () => new Promise((_, reject) => (fail = reject)))], {
      keys,
      isOpen: false,
    });
    const answer = chat(token);
    await settle();
    expect(await live(token)).toMatchObject({
      requests: [{ state: 'loading', model: null, tokens: 0, prompt_tokens: null }],
      models: [{ state: 'loading', engine: null, pool: null }],
    });
    fail(new Error('no'));
    expect((await answer).status).toBe(500);
    expect(await live(token)).toMatchObject({ requests: [], models: [{ state: 'failed' }] });
  });
});

describe('[L4] the history', () => {
  interface History {
    readonly at: readonly number[];
    readonly answered: readonly number[];
    readonly failed: readonly number[];
    readonly models: readonly { id: string; generated: (number | null)[]; batch: (number | null)[]; lookups: (number | null)[]; used_bytes: (number | null)[] }[]; // prettier-ignore
  }
  const history = async (token: string): Promise<History> =>
    (await (await get('/admin/live/history', token)).json()) as History;

  test('samples rates, batch, pool, cache and requests every five seconds without a watcher', async () => {
    const clock = createManualClock();
    server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, clock });
    const token = await keyOf('alice', 'inference', 'read-only');
    expect(await history(token)).toMatchObject({ interval_ms: 5000, at: [], models: [] });
    const tick = async (ms: number): Promise<void> => {
      clock.advance(ms);
      await vi.waitFor(async () => expect((await history(token)).at.at(-1)).toBe(clock.wallClock()));
    };
    await tick(5000);
    clock.advance(1000);
    await chat(token);
    await chat(token, { model: 'nobody' });
    // Saving a conversation and rating are no answers of a model.
    await post('/v1/chats/a', token, { title: 'a', version: 0, content: {} });
    await post('/v1/feedback', token, { request_id: 'a', thumbs: 'up' });
    await tick(4000);
    const { at, answered, failed, models } = await history(token);
    expect(at[1]! - at[0]!).toBe(5000);
    expect([answered, failed]).toEqual([[0, 2], [0, 0]]); // prettier-ignore
    expect(models).toHaveLength(1);
    const [toy] = models;
    expect(toy!.batch).toEqual([null, 0]); // not loaded before the first request
    expect(toy!.generated).toEqual([0, 6 / 5]);
    expect(toy!.lookups[1]).toBe((await model.stats()).cache.numLookups);
    expect(toy!.used_bytes[1]).toBeGreaterThan(0);
  });

  test('is bounded to an hour, requires the scope operate, and ends with the server', async () => {
    const clock = createManualClock();
    server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, clock });
    const token = await keyOf('alice', 'read-only');
    for (let i = 0; i < 725; i++) {
      clock.advance(5000);
      await settle();
    }
    const { at } = await history(token);
    expect(at).toHaveLength(720);
    expect(at.at(-1)! - at[0]!).toBe(719 * 5000);
    expect((await get('/admin/live/history', await keyOf('bob', 'inference'))).status).toBe(403);
    await server.shutDown(0);
    clock.advance(5000);
    await settle();
    expect(server.services.history.samples()).toHaveLength(720);
    expect(server.services.history.samples().at(-1)!.atMs).toBe(at.at(-1));
  });
});

describe('[L5] alerts', () => {
  test('name the share of failed requests and its limit, and end after five minutes', async () => {
    const clock = createManualClock();
    const broken = entryOf('broken', () => Promise.reject(new Error('no')));
    server = createTestServer([entryOf('toy', async () => model), broken], { keys, isOpen: false, clock });
    const token = await keyOf('alice', 'inference', 'read-only');
    const alerts = async () => ((await (await get('/admin/live', token)).json()) as { alerts: unknown[] }).alerts;
    for (let i = 0; i < 9; i++) expect((await chat(token, { model: 'broken' })).status).toBe(500);
    expect(await alerts()).toEqual([]); // nine requests are no trend
    await chat(token);
    expect(await alerts()).toEqual([{ kind: 'error_share', value: 0.9, limit: 0.05, count: 10, window_ms: 300_000 }]);
    for (let i = 0; i < 61; i++) {
      clock.advance(5000);
      await settle();
    }
    expect(await alerts()).toEqual([]);
  });
});

describe('[L3] the stream', () => {
  const decode = (value: Uint8Array | undefined): string => new TextDecoder().decode(value);

  test('sends a snapshot at once and one each interval, until its key is revoked', async () => {
    const clock = createManualClock();
    server = createTestServer([entryOf('toy', async () => model)], { keys, isOpen: false, clock });
    const { key, token } = await keys.create({ name: 'a', tenant: 'alice', scopes: ['read-only'] });
    const reader = (await get('/admin/live/events?interval_ms=500', token)).body!.getReader();
    const first = decode((await reader.read()).value);
    expect(first).toMatch(/^event: live\ndata: \{"object":"live"/);
    expect(server.services.watchers.numWatchers).toBe(1);
    await settle();
    const next = reader.read();
    clock.advance(499);
    await settle();
    clock.advance(1);
    expect(decode((await next).value)).toMatch(/^event: live\n/);
    keys.revoke(key.id);
    await settle();
    clock.advance(500);
    expect(decode((await reader.read()).value)).toMatch(/^event: error\n.*invalid_api_key/);
    expect((await reader.read()).done).toBe(true);
    expect(server.services.watchers.numWatchers).toBe(0);
  });

  test('keeps no abort listener per snapshot', async () => {
    const clock = createManualClock();
    server = createTestServer([entryOf('toy', async () => model)], { clock });
    const counts = new Map<EventTarget, number>();
    const change = (target: EventTarget, difference: number): void =>
      void counts.set(target, (counts.get(target) ?? 0) + difference);
    const add = vi.spyOn(AbortSignal.prototype, 'addEventListener').mockImplementation(function (
      this: AbortSignal,
      ...args: Parameters<EventTarget['addEventListener']>
    ) {
      change(this, 1);
      EventTarget.prototype.addEventListener.apply(this, args);
    });
    const remove = vi.spyOn(AbortSignal.prototype, 'removeEventListener').mockImplementation(function (
      this: AbortSignal,
      ...args: Parameters<EventTarget['removeEventListener']>
    ) {
      change(this, -1);
      EventTarget.prototype.removeEventListener.apply(this, args);
    });
    try {
      const reader = (await get('/admin/live/events', '')).body!.getReader();
      const most: number[] = [];
      for (let turn = 0; turn < 20; turn++) {
        await reader.read();
        await settle();
        most.push(Math.max(...counts.values()));
        clock.advance(1000);
      }
      expect(Math.max(...most)).toBeLessThanOrEqual(2);
      await reader.cancel();
    } finally {
      add.mockRestore();
      remove.mockRestore();
    }
  });

  test('rejects more than 64 watchers; one that leaves frees its slot', async () => {
    const token = await keyOf('alice', 'read-only');
    const open = await Promise.all(Array.from({ length: 64 }, () => get('/admin/live/events', token)));
    expect(open.map(({ status }) => status)).toEqual(Array.from({ length: 64 }, () => 200));
    const refused = await get('/admin/live/events', token);
    expect(refused.status).toBe(429);
    expect(refused.headers.get('retry-after')).toBe('5');
    for (const { body } of open) await body!.cancel();
    expect(server.services.watchers.numWatchers).toBe(0);
    const again = await get('/admin/live/events', token);
    expect(again.status).toBe(200);
    await again.body!.cancel();
  });

  test('[S4] rejects unknown, repeated and out-of-range options', async () => {
    const token = await keyOf('alice', 'read-only');
    for (const [path, code] of [
      ['/admin/live?x=1', 'unknown_parameter'],
      ['/admin/live/events?interval=1000', 'unknown_parameter'],
      ['/admin/live/events?interval_ms=249', 'invalid_value'],
      ['/admin/live/events?interval_ms=1e3', 'invalid_value'],
      ['/admin/live/events?interval_ms=500&interval_ms=500', 'invalid_value'],
      ['/v1/whoami?tenant=bob', 'unknown_parameter'],
    ]) {
      const response = await get(path!, token);
      expect(response.status, path).toBe(400);
      expect(await response.json(), path).toMatchObject({ error: { code } });
    }
    expect(server.services.watchers.numWatchers).toBe(0);
  });
});
