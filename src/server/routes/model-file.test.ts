import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createMemoryKeys, createTestServer, entryOf, listenOnLoopback } from '../../../test/support/test-server.ts';
import { createModelFiles } from '../../node/server/model-files.ts';
import { createKeyStore, type KeyScope } from '../keys/key-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'ruvllm-model-file-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Longer than one chunk, and every byte differs from its neighbours. */
const BYTES = Uint8Array.from({ length: 700_001 }, (_, i) => (i * 31) & 0xff);
const SHA256 = createHash('sha256').update(BYTES).digest();
const path = join(folder, 'model.gguf');

const never = (): never => {
  throw new Error('no model is loaded here');
};
const tokens = new Map<string, string>();
const keys = createKeyStore(createMemoryKeys(), () => 1000);
const server = createTestServer(
  [
    entryOf('owner/model', never, { path, aliases: ['short'] }),
    entryOf('nowhere', never),
    entryOf('missing', never, { path: join(folder, 'missing.gguf') }),
    entryOf('split', never, { path: join(folder, 'model-00001-of-00002.gguf') }),
    entryOf('folder', never, { path: join(folder, 'folder.gguf') }),
  ],
  { keys, isOpen: false, modelFiles: createModelFiles() },
);

beforeAll(async () => {
  writeFileSync(path, BYTES);
  writeFileSync(join(folder, 'secret.gguf'), 'secret');
  writeFileSync(join(folder, 'model-00001-of-00002.gguf'), 'part');
  mkdirSync(join(folder, 'folder.gguf'));
  for (const scope of ['inference', 'read-only', 'download', 'admin'] as KeyScope[]) {
    tokens.set(scope, (await keys.create({ name: scope, tenant: 'alice', scopes: [scope] })).token);
  }
});

const ask = (id: string, headers: Record<string, string> = {}, { scope = 'download', method = 'GET' } = {}) =>
  server.fetch(
    new Request(`http://localhost/v1/model-files/${id}`, {
      method,
      headers: { authorization: `Bearer ${tokens.get(scope)!}`, ...headers },
    }),
  );
const bytesOf = async (response: Response): Promise<Buffer> => Buffer.from(await response.arrayBuffer());

describe('[M14] the file of a model', () => {
  test('comes whole, with its size and hash', async () => {
    for (const id of ['owner/model', 'short']) {
      const response = await ask(id);
      expect(response.status).toBe(200);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'content-length': String(BYTES.length),
        'accept-ranges': 'bytes',
        etag: `"${SHA256.toString('hex')}"`,
        'repr-digest': `sha-256=:${SHA256.toString('base64')}:`,
        'cache-control': 'no-store',
      });
      expect((await bytesOf(response)).equals(BYTES)).toBe(true);
    }
  });

  test.each([
    ['bytes=0-0', 0, 1],
    ['bytes=300000-', 300_000, BYTES.length],
    ['bytes=10-262200', 10, 262_201],
    ['bytes=-5', BYTES.length - 5, BYTES.length],
    ['bytes=5-99999999', 5, BYTES.length],
  ])('%s is a part of it', async (range, start, end) => {
    const response = await ask('short', { range });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/${BYTES.length}`);
    expect(response.headers.get('content-length')).toBe(String(end - start));
    expect((await bytesOf(response)).equals(BYTES.subarray(start, end))).toBe(true);
  });

  test.each(['bytes=700001-', 'bytes=99999999-', 'bytes=-0'])('%s is a 416 with the size', async (range) => {
    const response = await ask('short', { range });
    expect([response.status, response.headers.get('content-range')]).toEqual([416, `bytes */${BYTES.length}`]);
  });

  test.each(['bytes=0-1,3-4', 'bytes=9-3', 'lines=1-2', 'bytes=-', 'bytes=a-b'])('%s is no range', async (range) => {
    const response = await ask('short', { range });
    expect(response.status).toBe(200);
    expect(await bytesOf(response)).toHaveLength(BYTES.length);
  });

  test('a range of another version is the whole file', async () => {
    const range = 'bytes=5-';
    expect((await ask('short', { range, 'if-range': `"${SHA256.toString('hex')}"` })).status).toBe(206);
    expect((await ask('short', { range, 'if-range': '"other"' })).status).toBe(200);
  });

  test('needs the scope: keys that only generate or read do not get it', async () => {
    for (const scope of ['inference', 'read-only']) {
      const response = await ask('short', {}, { scope });
      expect(response.status).toBe(403);
      expect(await response.json()).toMatchObject({ error: { code: 'insufficient_scope' } });
    }
    expect((await ask('short', {}, { scope: 'admin' })).status).toBe(200);
    expect((await server.fetch(new Request('http://localhost/v1/model-files/short'))).status).toBe(401);
  });

  test('no other file is served, and no path is named', async () => {
    for (const id of [
      'secret.gguf',
      '..%2Fsecret.gguf',
      '%2e%2e/secret.gguf',
      encodeURIComponent(path),
      encodeURIComponent(join(folder, 'secret.gguf')),
      `file://${path}`,
      'model.gguf',
      'nowhere',
      'missing',
      'folder',
      'short:adapter',
      'short%00',
    ]) {
      const response = await ask(id, {}, { scope: 'admin' });
      expect(response.status, id).toBe(404);
      if (!id.includes('ruvllm-model-file')) expect(await response.text()).not.toContain(folder);
    }
    const split = await ask('split');
    expect([split.status, await split.text()]).toEqual([400, expect.stringContaining('split into several files')]);
  });

  test('a replaced file has another hash', async () => {
    const other = join(folder, 'other.gguf');
    writeFileSync(other, BYTES.map((byte) => byte ^ 1)); // prettier-ignore
    const before = (await ask('short', { range: 'bytes=0-0' })).headers.get('etag');
    renameSync(path, join(folder, 'kept.gguf'));
    renameSync(other, path);
    expect((await ask('short', { range: 'bytes=0-0' })).headers.get('etag')).not.toBe(before);
    renameSync(join(folder, 'kept.gguf'), path);
    expect((await ask('short', { range: 'bytes=0-0' })).headers.get('etag')).toBe(before);
  });

  test('a key that is revoked during the download does not get the rest', async () => {
    const { key, token } = await keys.create({ name: 'old', tenant: 'alice', scopes: ['download'] });
    const response = await ask('short', { authorization: `Bearer ${token}` });
    const reader = response.body!.getReader();
    expect((await reader.read()).value!.length).toBeGreaterThan(0);
    keys.revoke(key.id);
    await expect(reader.read()).rejects.toThrow('not valid any more');
  });

  test('over a socket: HEAD has size and hash without a body, and files and ranges come as they are', async () => {
    const listening = await listenOnLoopback(server);
    const url = `${listening.url}/v1/model-files/owner/model`;
    const headers = { authorization: `Bearer ${tokens.get('download')!}` };
    const head = await fetch(url, { method: 'HEAD', headers });
    expect([head.status, head.headers.get('content-length'), head.headers.get('etag')]).toEqual([
      200,
      String(BYTES.length),
      `"${SHA256.toString('hex')}"`,
    ]);
    const part = await fetch(url, { headers: { ...headers, range: 'bytes=100-' } });
    expect((await bytesOf(part)).equals(BYTES.subarray(100))).toBe(true);
    const whole = await fetch(url, { headers });
    expect((await bytesOf(whole)).equals(BYTES)).toBe(true);
    await listening.close(100);
  });
});
