// A memory whose PostgreSQL is unavailable when it is opened, in the built package.
import { afterEach, describe, expect, test } from 'vitest';
import { auditInput } from '../src/memory/audit/harness.contract.ts';
import type { OpenMemoryOptions } from '../src/node/memory/open-memory.ts';
import { freePort } from '../src/platform/node/memory/postgres-server.contract.ts';
import { startPglite } from '../src/platform/node/memory/postgres-setup.contract.ts';
import { isServerBuilt } from './support/dist-server.ts';
import { importDist } from './support/import-dist.ts';
import { createServeFolder, type ServeFolder } from './support/serve-process.ts';

const { openNodeMemory } =
  await importDist<typeof import('../src/node/memory/open-memory.ts')>('node/memory/open-memory.js');
const masterKey = { key: Buffer.alloc(32, 1) };

/** An unused port; a port that was just free could be taken by now. */
const AWAY_PORT = 1;
const awayAt = (port: number): string => `postgres://user:S3cret@127.0.0.1:${port}/memory`;

test('[MS29] opens in this process, reports the reason once and in its status, and works', async () => {
  const port = AWAY_PORT;
  const warnings: string[] = [];
  const memory = await openNodeMemory({
    place: awayAt(port),
    masterKey,
    modelPath: null,
    report: (message) => warnings.push(message),
  });
  const reason = `it cannot be opened: the memory's PostgreSQL: connect ECONNREFUSED 127.0.0.1:${port}`;
  try {
    const id = await memory.add('acme', { text: 'a card' });
    expect(await memory.get('acme', id)).toMatchObject({ text: 'a card' });
    memory.audit.enqueue('acme', auditInput({ query: 'q', queryEmbedding: null, space: null }));
    await memory.audit.flush();
    await memory.maintain();
    expect(await memory.audit.verify('acme')).toMatchObject({ isIntact: true, numChecked: 1 });
    expect(memory.degraded()).toBe(reason);
    expect((await memory.stats(null)).degraded).toBe(reason);
    expect(warnings).toEqual([`the memory is kept in this process only and is lost when it ends, because ${reason}`]);
    await expect(memory.rotateKey({ key: Buffer.alloc(32, 2) })).rejects.toMatchObject({ code: 'io' });
    await expect(memory.erase({ tenant: 'acme' })).rejects.toMatchObject({ code: 'io' });
  } finally {
    await memory.close();
  }
});

test('[MS29] rejects callers that require durability', async () => {
  const options: OpenMemoryOptions = { place: awayAt(AWAY_PORT), masterKey, modelPath: null, whenUnreachable: 'fail' };
  const refused = openNodeMemory(options);
  await expect(refused).rejects.toMatchObject({ code: 'io', isRetryable: true });
  await expect(refused).rejects.not.toThrow('S3cret');
  const unknown = { ...options, whenUnreachable: 'wait' } as unknown as OpenMemoryOptions;
  await expect(openNodeMemory(unknown)).rejects.toMatchObject({ code: 'invalid_option' });
});

test('[MS29] a wrong key stays an error', async () => {
  const server = await startPglite();
  try {
    const memory = await openNodeMemory({ place: server.connectionString, masterKey, modelPath: null });
    expect(memory.degraded()).toBeNull();
    await memory.close();
    const other = openNodeMemory({
      place: server.connectionString,
      masterKey: { key: Buffer.alloc(32, 9) },
      modelPath: null,
    });
    await expect(other).rejects.toMatchObject({ code: 'invalid_option' });
  } finally {
    await server.stop();
  }
});

describe.skipIf(!isServerBuilt)('[MS29] a server that starts before its PostgreSQL', () => {
  let folder: ServeFolder | null = null;
  afterEach(() => folder?.dispose());

  test('refuses writes until it connects by itself, and its memory is then in PostgreSQL', async () => {
    folder = createServeFolder({ contextLength: 512 });
    const port = await freePort();
    const place = `postgres://postgres@127.0.0.1:${port}/postgres`;
    const start = () => folder!.launch({ onErrorOutput() {} }, `tiny=${folder!.model}`, '--memory', place, '--memory-embedder', 'static', '--no-dashboard', '--threads', '1'); // prettier-ignore
    const post = (url: string, path: string, body: object): Promise<Response> =>
      fetch(url + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const add = (url: string, text: string): Promise<Response> => post(url, '/admin/memory/add', { text });
    const health = async (url: string): Promise<unknown> => (await (await fetch(`${url}/health`)).json()) as unknown;
    const server = await start();
    const refused = await add(server.url, 'before');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, expect.any(String)]);
    expect(await refused.text()).not.toContain(String(port));
    expect(await health(server.url)).toMatchObject({ degraded: ['memory'] });
    // Models answer all the same.
    expect((await post(server.url, '/v1/completions', { model: 'tiny', prompt: 'Once', max_tokens: 1 })).status).toBe(
      200,
    );

    const database = await startPglite(undefined, port);
    try {
      await expect.poll(() => health(server.url), { timeout: 30_000 }).not.toHaveProperty('degraded');
      expect((await add(server.url, 'after')).status).toBe(200);
      server.process.kill('SIGKILL');
      await server.exit;
      const next = await start();
      const { records } = (await (await post(next.url, '/admin/memory/list', { kinds: ['document'] })).json()) as { records: { text: string }[] }; // prettier-ignore
      expect(records.map(({ text }) => text)).toEqual(['after']);
      next.process.kill('SIGKILL');
      await next.exit;
    } finally {
      await database.stop();
    }
  });
});
