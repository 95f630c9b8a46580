import { beforeEach, expect, test } from 'vitest';
import { createTestServer, entryOf, type TestServer } from '../../../test/support/test-server.ts';
import { createToyRuntime } from '../../../test/support/toy-runtime.ts';
import { RuvLLMError } from '../../core/errors.ts';
import type { ModelCatalog, PullStep } from '../model-catalog.ts';

let server: TestServer;
let tell: (step: PullStep) => void;
let finishPull: () => void;
let opened: string[];

beforeEach(() => {
  opened = [];
  const catalog: ModelCatalog = {
    list: async () => [
      { reference: 'owner/small:Q8_0', sizeBytes: 10, requiredBytes: 2 ** 20, modifiedMs: 5000 },
      { reference: 'owner/huge', sizeBytes: 10, requiredBytes: 2 ** 50, modifiedMs: 5000 },
      { reference: 'owner/broken', sizeBytes: 10, requiredBytes: null, modifiedMs: 5000 },
    ],
    async open(reference, id) {
      opened.push(reference);
      if (reference !== 'owner/small:Q8_0') throw new RuvLLMError('not_found', `${reference} is not here`);
      return entryOf(id ?? reference, async () => (await createToyRuntime()).model, { sizeBytes: 10 });
    },
    pull: (_reference, { signal, onProgress }) =>
      new Promise((resolve, reject) => {
        tell = onProgress;
        finishPull = () => resolve({ sizeBytes: 10, isDownloaded: true });
        signal.addEventListener('abort', () => reject(new RuvLLMError('aborted', 'cancelled')));
      }),
    suggest: async () => ({
      isHubReachable: false,
      models: [
        { name: 'small', sizeBytes: 100, requiredBytes: 1000.4, tokensPerSecond: 12.345, isDownloaded: true },
        { name: 'huge', sizeBytes: 100, requiredBytes: 2 ** 50, tokensPerSecond: 0.01234, isDownloaded: false },
      ],
    }),
    freeBytes: () => 2 ** 40,
  };
  server = createTestServer([entryOf('toy', async () => (await createToyRuntime()).model)], { catalog });
});

async function ask(method: string, path: string, body?: object): Promise<{ status: number; body: any }> {
  const response = await server.fetch(
    new Request(`http://localhost${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    }),
  );
  return { status: response.status, body: (await response.json()) as unknown };
}

const chat = (more: object): Promise<Response> =>
  server.fetch(
    new Request('http://localhost/v1/chat/completions', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], max_tokens: 3, ignore_eos: true, ...more }),
    }),
  );

test('[M6] lists served models, downloaded files, and which fit', async () => {
  const { status, body } = await ask('GET', '/admin/models');
  expect(status).toBe(200);
  expect(body).toEqual({
    object: 'list',
    budget_bytes: null,
    used_bytes: 0,
    free_bytes: 2 ** 40,
    data: [
      {
        id: 'toy',
        object: 'served_model',
        node: 'localhost',
        display_name: 'toy',
        aliases: [],
        state: 'unloaded',
        num_users: 0,
        size_bytes: null,
        held_bytes: 0,
        is_added: false,
        is_pinned: false,
        group: null,
        expires: null,
        error: null,
      },
    ],
    cached: [
      {
        reference: 'owner/small:Q8_0',
        size_bytes: 10,
        required_bytes: 2 ** 20,
        modified: 5,
        served_as: null,
        fits: 'yes',
      },
      { reference: 'owner/huge', size_bytes: 10, required_bytes: 2 ** 50, modified: 5, served_as: null, fits: 'no' },
      {
        reference: 'owner/broken',
        size_bytes: 10,
        required_bytes: null,
        modified: 5,
        served_as: null,
        fits: 'unknown',
      },
    ],
  });
});

test('suggests models for a first try, and says which fit', async () => {
  expect(await ask('GET', '/admin/models/suggestions')).toEqual({
    status: 200,
    body: {
      object: 'list',
      is_hub_reachable: false,
      data: [
        {
          name: 'small',
          size_bytes: 100,
          required_bytes: 1000,
          tokens_per_second: 12,
          is_downloaded: true,
          fits: 'yes',
        },
        {
          name: 'huge',
          size_bytes: 100,
          required_bytes: 2 ** 50,
          tokens_per_second: 0.012,
          is_downloaded: false,
          fits: 'no',
        },
      ],
    },
  });
});

test('measures the speed of a model', async () => {
  const { status, body } = await ask('POST', '/admin/models/benchmark', { model: 'toy' });
  expect(status).toBe(200);
  expect(body).toMatchObject({ object: 'benchmark', model: 'toy', num_threads: expect.any(Number) });
  expect(body.num_prompt_tokens).toBeGreaterThan(0);
  expect(body.prompt_tokens_per_second).toBeGreaterThan(0);
  expect(body.tokens_per_second).toBeGreaterThan(0);
  expect(body.measured).toBeGreaterThan(0);
  expect(await ask('POST', '/admin/models/benchmark', { model: 'none' })).toMatchObject({ status: 404 });
});

test('[M6] adds, loads, unloads and removes a model while the server runs', async () => {
  const loaded = await ask('POST', '/admin/models/load', { model: 'owner/small:Q8_0', name: 'mine', wait_ms: 5000 });
  expect(loaded).toMatchObject({ status: 200, body: { id: 'mine', state: 'loaded', is_added: true } });
  expect((await chat({ model: 'mine' })).status).toBe(200);
  expect(await ask('POST', '/admin/models/load', { model: 'mine', wait_ms: 5000 })).toMatchObject({ status: 200 });
  expect(opened).toEqual(['owner/small:Q8_0']);
  expect(await ask('POST', '/admin/models/unload', { model: 'mine' })).toMatchObject({
    status: 200,
    body: { state: 'unloaded', held_bytes: 0 },
  });
  expect(await ask('DELETE', '/admin/models/mine')).toMatchObject({ status: 200, body: { deleted: true } });
  expect((await chat({ model: 'mine' })).status).toBe(404);
  expect(await ask('DELETE', '/admin/models/toy')).toMatchObject({ status: 409 });
});

test('[M5] unloading a model in use is a 409; forced, it waits for the running answer', async () => {
  const stream = await chat({ model: 'toy', stream: true, max_tokens: 200 });
  expect(await ask('POST', '/admin/models/unload', { model: 'toy' })).toMatchObject({
    status: 409,
    body: { error: { code: 'conflict', type: 'conflict_error' } },
  });
  const unloading = ask('POST', '/admin/models/unload', { model: 'toy', force: true, drain_ms: 10_000 });
  const refused = await chat({ model: 'toy' });
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).not.toBeNull();
  const text = await stream.text();
  expect(text).toContain('[DONE]');
  expect(text).not.toContain('"error"');
  expect(await unloading).toMatchObject({ status: 200, body: { state: 'unloaded' } });
  expect((await chat({ model: 'toy' })).status).toBe(200); // loaded again
});

test('[M5] requests that outlast the drain time fail with a typed error', async () => {
  const stream = await chat({ model: 'toy', stream: true, max_tokens: 480 });
  const unloaded = await ask('POST', '/admin/models/unload', { model: 'toy', force: true, drain_ms: 0 });
  expect(unloaded).toMatchObject({ status: 200, body: { state: 'unloaded' } });
  expect(await stream.text()).toContain('"code":"not_loaded"');
});

test('[M6] rejects missing files, invalid names and unknown models', async () => {
  for (const [path, body, status, code] of [
    ['load', { model: 'owner/none' }, 404, 'not_found'],
    ['load', { model: 'owner/small:Q8_0', name: 'a b' }, 400, 'invalid_value'],
    ['load', { model: 'owner/small:Q8_0', nam: 'x' }, 400, 'unknown_parameter'],
    ['load', { model: 'toy', wait_ms: 50_001 }, 400, 'invalid_value'],
    ['load', {}, 400, 'missing_required_parameter'],
    ['load', { model: 'x'.repeat(513) }, 400, 'invalid_value'],
    ['unload', { model: 'none' }, 404, 'model_not_found'],
    ['unload', { model: 'toy', drain_ms: -1 }, 400, 'invalid_value'],
    ['pull', { model: '' }, 400, 'invalid_value'],
  ] as const) {
    expect(await ask('POST', `/admin/models/${path}`, body), JSON.stringify(body)).toMatchObject({
      status,
      body: { error: { code } },
    });
  }
  expect((await ask('GET', '/admin/models?x=1')).status).toBe(400);
  expect((await ask('DELETE', '/admin/models/toy?force=yes')).status).toBe(400);
});

test('[M7] a pull can be watched to its end, listed and cancelled', async () => {
  const { status, body } = await ask('POST', '/admin/models/pull', { model: 'owner/new' });
  expect(status).toBe(202);
  const { id } = body as { id: string };
  expect(body).toEqual({
    id,
    object: 'pull',
    reference: 'owner/new',
    state: 'running',
    phase: null,
    item: null,
    done_bytes: 0,
    total_bytes: null,
    bytes_per_second: null,
    started: expect.any(Number) as number,
    ended: null,
    error: null,
  });
  const events = await server.fetch(new Request(`http://localhost/admin/models/pulls/${id}/events`));
  expect(events.headers.get('content-type')).toMatch('text/event-stream');
  tell({ phase: 'download', item: 'a.gguf', doneBytes: 5, totalBytes: 10 });
  finishPull();
  const text = await events.text();
  expect(text).toMatch(/^event: pull\n/);
  expect(text).toContain('"state":"done"');
  expect(server.services.watchers.numWatchers).toBe(0);
  expect((await ask('GET', '/admin/models/pulls')).body).toMatchObject({ data: [{ id, state: 'done' }] });
  const second = (await ask('POST', '/admin/models/pull', { model: 'owner/other' })).body as { id: string };
  expect((await ask('DELETE', `/admin/models/pulls/${second.id}`)).status).toBe(200);
  expect((await ask('GET', '/admin/models/pulls')).body).toMatchObject({ data: [{ state: 'cancelled' }, { id }] });
  expect((await ask('DELETE', '/admin/models/pulls/none')).status).toBe(404);
  expect((await ask('GET', '/admin/models/pulls/none/events')).status).toBe(404);
});

test('[M6] without a catalog, models cannot be added', async () => {
  server = createTestServer([entryOf('toy', async () => (await createToyRuntime()).model)]);
  expect((await ask('GET', '/admin/models')).body).toMatchObject({ free_bytes: null, cached: null });
  expect((await ask('POST', '/admin/models/load', { model: 'toy', wait_ms: 5000 })).status).toBe(200);
  expect((await ask('POST', '/admin/models/load', { model: 'owner/x' })).status).toBe(501);
  expect((await ask('POST', '/admin/models/pull', { model: 'owner/x' })).status).toBe(501);
  expect((await ask('GET', '/admin/models/pulls')).status).toBe(501);
});
