// `ruvllm serve` and `ruvllm keys` as processes.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isServerBuilt } from '../support/dist-server.ts';
import { createServeFolder, type ServeFolder } from '../support/serve-process.ts';

let folder: ServeFolder;
beforeAll(() => {
  folder = createServeFolder({ contextLength: 128 });
});
afterEach(async () => {
  folder.killAll();
  await folder.here.stopAll();
});
afterAll(() => folder.dispose());

const ask = (url: string, more: object, token?: string): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'hi' }], max_tokens: 3, ...more }),
  });

describe.skipIf(!isServerBuilt)('ruvllm serve', () => {
  test('[E1] is open on loopback, serves several models by name, and finishes a stream after the signal', async () => {
    const server = await folder.start(folder.model, `other=${folder.model}`, '--alias', 'gpt-4o=other');
    expect(server).toMatchObject({ isOpen: true, models: ['tiny', 'other'] });
    for (const name of ['tiny', 'default', 'other', 'gpt-4o']) {
      expect((await ask(server.url, { model: name })).status, name).toBe(200);
    }
    const stream = await ask(server.url, { model: 'tiny', stream: true, max_tokens: 100, ignore_eos: true });
    server.process.kill('SIGTERM');
    expect((await stream.text()).endsWith('data: [DONE]\n\n')).toBe(true);
    expect(await server.exit).toBe(0);
  });

  test('[S4] [S11] --strict rejects unknown fields, --model-fallback answers unknown models, --api-key closes', async () => {
    const plain = await folder.here.start(folder.model);
    const ignored = await ask(plain.url, { surprise: 1 });
    expect([ignored.status, ignored.headers.get('x-ignored-fields')]).toEqual([200, 'surprise']);
    expect((await ask(plain.url, { model: 'gpt-9' })).status).toBe(404);
    const key = 'a-key-of-the-command-line';
    const server = await folder.here.start(folder.model, '--strict', '--model-fallback', '--api-key', key);
    expect(server.isOpen).toBe(false);
    expect((await ask(server.url, { model: 'tiny' })).status).toBe(401);
    expect((await ask(server.url, { model: 'tiny', surprise: 1 }, key)).status).toBe(400);
    expect(await (await ask(server.url, { model: 'gpt-9' }, key)).json()).toMatchObject({ model: 'tiny' });
  });

  test('[K5] requires keys before it starts on another address', async () => {
    const { status, stdout } = await folder.here.run('serve', folder.model, '--host', '0.0.0.0');
    expect(status).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      error: { message: expect.stringContaining('ruvllm keys create NAME') },
    });
  });

  test('[K5] requires keys before it starts with pages of other sites allowed', async () => {
    for (const origin of ['*', 'https://app.example']) {
      const { status, stdout } = await folder.here.run('serve', folder.model, '--cors', origin);
      expect(status).toBe(2);
      expect(JSON.parse(stdout)).toMatchObject({
        error: { message: expect.stringContaining(`pages of ${origin} could use the server`) },
      });
    }
    const short = await folder.here.run('serve', folder.model, '--cors', '*', '--api-key', 'short');
    expect(JSON.parse(short.stdout)).toMatchObject({ error: { message: expect.stringContaining('16 or more') } });
  });

  test('[K3] keys created and revoked by the command apply to a running server', async () => {
    const first = folder.keys('create', 'first', '--tenant', 'alice');
    const server = await folder.start(folder.model);
    expect(server.isOpen).toBe(false);
    expect((await ask(server.url, { model: 'tiny' })).status).toBe(401);
    expect((await ask(server.url, { model: 'tiny' }, first.token)).status).toBe(200);
    const second = await folder.here.keys('create', 'second', '--scope', 'read-only');
    expect((await ask(server.url, { model: 'tiny' }, second.token)).status).toBe(403);
    expect((await folder.here.keys('revoke', first.id)).status).toBe(0);
    expect((await ask(server.url, { model: 'tiny' }, first.token)).status).toBe(401);
    expect(await folder.here.keys('revoke', '000000000000000000')).toMatchObject({ status: 1 });
    expect(await folder.here.keys('create', 'x', '--scope', 'root')).toMatchObject({ status: 2 });
    server.process.kill('SIGINT');
    expect(await server.exit).toBe(0);
  });
});

describe.skipIf(!isServerBuilt)('ruvllm ps', () => {
  let separateFolder: ServeFolder; // Without the keys of the other tests.
  beforeAll(() => {
    separateFolder = createServeFolder({ contextLength: 128 });
  });
  afterEach(() => separateFolder.killAll());
  afterAll(() => separateFolder.dispose());
  const ps = async (...args: string[]) => {
    const { status, stdout } = await separateFolder.here.run('ps', ...args);
    return { status, ...(JSON.parse(stdout) as { servers: Record<string, unknown>[]; error?: { code: string } }) };
  };

  test('lists the servers on this machine and what they do, and forgets ended ones', async () => {
    separateFolder.environment['RUVLLM_PORT'] = '1'; // An unused port.
    expect(await ps()).toEqual({ status: 0, servers: [] });
    const server = await separateFolder.start(separateFolder.model);
    const { servers } = await ps();
    expect(servers).toMatchObject([{ url: server.url, pid: server.process.pid, problem: null, numRequests: 0 }]);
    expect(servers[0]!['models']).toMatchObject([{ id: 'tiny', state: 'loaded', numRunning: 0, numWaiting: 0 }]);
    const stream = await ask(server.url, { model: 'tiny', stream: true, max_tokens: 100, ignore_eos: true });
    const reader = stream.body!.getReader();
    await reader.read();
    await reader.cancel();
    server.process.kill('SIGKILL');
    await server.exit;
    expect(await ps()).toEqual({ status: 0, servers: [] });
    expect(await ps('--url', server.url)).toMatchObject({ status: 1, error: { code: 'io' } });
  });

  test('without a sufficient key says which scope is required', async () => {
    const key = await separateFolder.here.keys('create', 'looks', '--scope', 'read-only');
    const server = await separateFolder.start(separateFolder.model);
    const listing = await ps();
    expect(listing.status).toBe(0);
    expect(listing.servers).toMatchObject([{ url: server.url, problem: expect.stringContaining('--scope read-only') }]);
    expect((await ps('--api-key', key.token)).servers).toMatchObject([{ problem: null, numRequests: 0 }]);
    await separateFolder.here.keys('revoke', key.id);
  });
});
