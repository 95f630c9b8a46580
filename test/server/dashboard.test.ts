// The requests of a dashboard, to `ruvllm serve` as a process with a real engine.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { createServeFolder, type ServeFolder } from '../support/serve-process.ts';

let folder: ServeFolder;
beforeAll(() => {
  folder = createServeFolder({ contextLength: 2048 });
});
afterEach(() => folder.killAll());
afterAll(() => folder.dispose());

describe.skipIf(!isServerBuilt)('the dashboard routes', () => {
  test('[W1][L1][L2][PT1][M5] a read-only key sees what another key does, but cannot do it', async () => {
    const look = folder.keys('create', 'look', '--tenant', 'alice', '--scope', 'read-only');
    const use = folder.keys('create', 'use', '--tenant', 'alice', '--scope', 'inference');
    const run = folder.keys('create', 'run', '--tenant', 'root', '--scope', 'admin');
    const { url, process: server, exit } = await folder.start(folder.model);
    const ask = (path: string, token: string, body?: object): Promise<Response> =>
      fetch(`${url}${path}`, {
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { method: 'POST', body: JSON.stringify(body) }),
      });
    const read = async (path: string, token: string, body?: object): Promise<any> =>
      (await ask(path, token, body)).json();

    expect(await read('/v1/whoami', look.token)).toMatchObject({
      key: { name: 'look' },
      tenant: 'alice',
      allows: { read: true, write: false, operate: true, admin: false },
      is_open: false,
      parts: { memory: true, catalog: true },
    });
    const chat = {
      model: 'tiny',
      messages: [{ role: 'user', content: 'the same words for everyone' }],
      ignore_eos: true,
    };
    expect((await ask('/v1/chat/completions', look.token, chat)).status).toBe(403);

    const stream = await ask('/v1/chat/completions', use.token, { ...chat, stream: true, max_tokens: 1500 });
    const requestId = stream.headers.get('x-request-id')!;
    const events = await ask('/admin/live/events?interval_ms=250', look.token);
    const reader = events.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('\n\n')) text += (await reader.read()).value;
    const live = JSON.parse(/^event: live\ndata: (.*)$/m.exec(text)![1]!) as any;
    expect(live.requests).toMatchObject([{ id: requestId, tenant: 'alice', model: 'tiny' }]);
    expect(live.models).toMatchObject([{ id: 'tiny', state: 'loaded', engine: { batch: 1, waiting: 0 } }]);
    expect((await ask('/admin/models/unload', run.token, { model: 'tiny' })).status).toBe(409);
    await stream.text();
    await reader.cancel();

    const missing = async () => {
      const { models } = await read('/admin/live', look.token);
      const lines = (await (await ask('/metrics', look.token)).text()).split('\n');
      const { pool, inter_token_ms: interToken } = models[0];
      expect(pool.tiers.reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0)).toBe(pool.used_bytes);
      return [
        `ruvllm_pool_bytes{model="tiny"} ${pool.used_bytes}`,
        `ruvllm_pool_budget_bytes{model="tiny"} ${pool.budget_bytes}`,
        `ruvllm_inter_token_seconds_count{model="tiny"} ${interToken.count}`,
      ].filter((line) => !lines.includes(line));
    };
    // Idle pages are packed shortly after, perhaps between the two requests.
    await expect.poll(missing).toEqual([]);

    const tree = await read('/admin/prefix-tree', look.token);
    expect(tree.nodes[0]).toMatchObject({ tenant: 'alice', parent: null, start_token: 0 });
    expect((await read('/admin/prefix-tree?tenant=root', run.token)).nodes).toEqual([]);

    await expect.poll(async () => (await ask('/admin/memory/audit/show', look.token, { requestId })).status).toBe(200);
    expect(await read('/admin/memory/audit/show', look.token, { requestId })).toMatchObject({
      entry: { entry: { requestId, model: 'tiny' } },
      // One span for both if the first token came before the clock of this thread saw the generation begin.
      spans: expect.arrayContaining([
        expect.objectContaining({ name: expect.stringMatching(/^(tokens|generation)$/) as string }),
      ]) as object,
    });
    expect((await ask('/admin/memory/audit/show', run.token, { requestId })).status).toBe(404);

    expect(await read('/admin/models/unload', run.token, { model: 'tiny' })).toMatchObject({ state: 'unloaded' });
    expect(await read('/admin/live', look.token)).toMatchObject({ models: [{ state: 'unloaded', pool: null }] });
    expect((await ask('/admin/models/load', look.token, { model: 'tiny' })).status).toBe(403);
    expect(await read('/admin/models/load', run.token, { model: 'tiny', wait_ms: 50_000 })).toMatchObject({
      state: 'loaded',
    });
    expect((await ask('/admin/models/load', run.token, { model: folder.model })).status).toBe(400);
    expect(await read('/admin/models', look.token)).toMatchObject({
      data: [{ id: 'tiny', num_users: 0 }],
      cached: expect.any(Array) as object,
    });

    folder.keys('revoke', look.id);
    expect((await ask('/v1/whoami', look.token)).status).toBe(401);
    server.kill('SIGTERM');
    expect(await exit).toBe(0);
  });
});
