import { randomBytes } from 'node:crypto';
import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildRandomModel } from '../../test/support/random-model.ts';
import { RuvLLMError } from '../core/errors.ts';
import { COMMIT, createTestPlatform, sha256 } from './fake-hub.contract.ts';
import { createHub, type Hub } from './hub.ts';
import type { HubPlatform } from './platform.ts';
import type { PushedModel, PushOptions } from './push-model.ts';

const TOKEN = 'hf_secretsecretsecret';
const BYTES = buildRandomModel({ architecture: 'llama', type: 'Q8_0', seed: 1, shape: { numLayers: 1 } });
const OID = sha256(BYTES);
const CHUNK = 40_000;
const NUM_PARTS = Math.ceil(BYTES.length / CHUNK);

interface UploadHub {
  readonly endpoint: string;
  /** `METHOD path`, in order. */
  readonly calls: string[];
  readonly authorizations: (string | undefined)[];
  /** Bytes of the parts that the store has. */
  readonly parts: Map<number, Uint8Array>;
  commitLines: { key: string; value: Record<string, unknown> }[];
  completed: unknown;
}

interface HubRules {
  readonly files?: string[];
  readonly isMultipart?: boolean;
  /** Answers a call itself; true: done. */
  readonly reply?: (call: string, response: ServerResponse, request: IncomingMessage) => boolean;
}

async function startUploadHub({
  files = [],
  isMultipart = true,
  reply = () => false,
}: HubRules = {}): Promise<UploadHub> {
  const hub = {
    calls: [],
    authorizations: [],
    parts: new Map(),
    commitLines: [],
    completed: null,
  } as unknown as UploadHub & {
    endpoint: string;
  };
  const server = createServer((request, response) => {
    const call = `${request.method} ${request.url}`;
    hub.calls.push(call);
    hub.authorizations.push(request.headers.authorization);
    if (reply(call, response, request)) return;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => answer(call, Buffer.concat(chunks), request, response));
  });
  const answer = (call: string, body: Buffer, request: IncomingMessage, response: ServerResponse): void => {
    const json = (value: unknown): void => void response.end(JSON.stringify(value));
    if (call === 'GET /api/models/owner/repo/revision/main') return json({ sha: COMMIT });
    if (call.startsWith('GET /api/models/owner/repo/tree/')) {
      return json(files.map((path) => ({ type: 'file', path, size: 1, oid: 'b'.repeat(40) })));
    }
    if (call === 'POST /api/repos/create') return json({ url: 'x' });
    if (call === 'POST /owner/repo.git/info/lfs/objects/batch') {
      const { objects } = JSON.parse(String(body)) as { objects: { oid: string; size: number }[] };
      const parts = Array.from({ length: Math.ceil(objects[0]!.size / CHUNK) }, (_, i) => [
        String(i + 1).padStart(5, '0'),
        `${hub.endpoint}/store/part/${i + 1}`,
      ]);
      const upload = isMultipart
        ? {
            href: `${hub.endpoint}/store/complete`,
            header: { chunk_size: String(CHUNK), ...Object.fromEntries(parts) },
          }
        : { href: `${hub.endpoint}/store/whole`, header: { 'x-store': '1' } };
      return json({ objects: [{ ...objects[0], actions: { upload, verify: { href: `${hub.endpoint}/verify` } } }] });
    }
    const part = /^PUT \/store\/part\/(\d+)$/.exec(call);
    if (part !== null) {
      hub.parts.set(Number(part[1]), body);
      return void response.setHeader('etag', `"${part[1]}-${body.length}"`).end();
    }
    if (call === 'PUT /store/whole') {
      expect([request.headers['content-length'], request.headers['x-store']]).toEqual([String(BYTES.length), '1']);
      hub.parts.set(0, body);
      return void response.end();
    }
    if (call === 'POST /store/complete') hub.completed = JSON.parse(String(body));
    if (call === 'POST /api/models/owner/repo/commit/main') {
      hub.commitLines = String(body).split('\n').map((line) => JSON.parse(line) as UploadHub['commitLines'][number]); // prettier-ignore
      return json({ commitOid: 'c'.repeat(40) });
    }
    json({});
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  hub.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return hub;
}

interface Setup {
  readonly path: string;
  readonly hub: Hub;
  readonly platform: HubPlatform;
  push(options?: PushOptions): Promise<PushedModel>;
}

function setUp(fake: UploadHub, token: string | null = TOKEN, origins: readonly string[] = []): Setup {
  const platform = createTestPlatform();
  const path = join(dirname(platform.cacheRoot), 'model-Q8_0.gguf');
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, BYTES);
  const hub = createHub({ platform, endpoint: fake.endpoint, token, origins });
  return { path, hub, platform, push: (options) => hub.pushModel(path, 'owner/repo', options) };
}

async function failure(promise: Promise<unknown>): Promise<RuvLLMError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RuvLLMError);
  const text =
    JSON.stringify({ message: (error as Error).message, data: (error as RuvLLMError).data }) +
    String((error as Error).stack);
  for (let cause = error; cause instanceof Error; cause = cause.cause) expect(cause.message).not.toContain(TOKEN);
  expect(text).not.toContain(TOKEN);
  return error as RuvLLMError;
}

const countOf = (fake: UploadHub, call: string): number => fake.calls.filter((other) => other === call).length;

test('uploads the parts, completes them, and commits the file with a card of its figures', async () => {
  const fake = await startUploadHub();
  const { push, platform } = setUp(fake);
  const divergence = { meanKl: 0.0123, top1: 0.95, numTokens: 256 };
  const command = 'ruvllm quantize a.gguf b.gguf --type Q8_0';
  const pushed = await push({ record: { sha256: OID, type: 'Q8_0', bitsPerWeight: 8.5, divergence, command } });
  expect(pushed).toMatchObject({ sha256: OID, sentBytes: BYTES.length, isCardWritten: true, commit: 'c'.repeat(40) });
  expect(Buffer.concat([...Array(NUM_PARTS).keys()].map((i) => fake.parts.get(i + 1)!))).toEqual(Buffer.from(BYTES));
  expect(fake.completed).toMatchObject({
    oid: OID,
    parts: expect.arrayContaining([{ partNumber: 1, etag: `"1-${CHUNK}"` }]),
  });
  expect(countOf(fake, 'POST /verify')).toBe(1);
  expect(fake.authorizations.every((value) => value === `Bearer ${TOKEN}`)).toBe(true);
  const lines = Object.fromEntries(fake.commitLines.map(({ key, value }) => [key, value]));
  expect(lines['lfsFile']).toEqual({ path: 'model-Q8_0.gguf', algo: 'sha256', oid: OID, size: BYTES.length });
  const card = Buffer.from(lines['file']!['content'] as string, 'base64').toString();
  for (const text of ['8.50', '1.23e-2 nats, mean over 256', '95.0 %', OID, command]) expect(card).toContain(text);
  // Nothing of the upload remains on this machine.
  expect(readdirSync(platform.cacheRoot)).toEqual([]);
});

test('uploads a file in one request if the hub offers no parts', async () => {
  const fake = await startUploadHub({ isMultipart: false });
  await setUp(fake).push();
  expect(Buffer.from(fake.parts.get(0)!).equals(Buffer.from(BYTES))).toBe(true);
});

test('sends a part again after a cut connection, and no other', async () => {
  let cuts = 2;
  const fake = await startUploadHub({
    reply(call, _, request) {
      if (call !== 'PUT /store/part/2' || cuts-- <= 0) return false;
      request.once('data', () => request.socket.destroy());
      return true;
    },
  });
  await setUp(fake).push();
  const counts = [...Array(NUM_PARTS).keys()].map((i) => countOf(fake, `PUT /store/part/${i + 1}`));
  expect(counts).toEqual(counts.map((_, i) => (i === 1 ? 3 : 1)));
});

test('a second push continues an interrupted one without its finished parts', async () => {
  let isBroken = true;
  const fake = await startUploadHub({
    reply(call, response) {
      if (call !== 'PUT /store/part/2' || !isBroken) return false;
      response.writeHead(500).end('{"error":"disk"}');
      return true;
    },
  });
  const { push } = setUp(fake);
  expect(await failure(push())).toMatchObject({ code: 'upload_failed', data: { status: 500 } });
  isBroken = false;
  fake.calls.length = 0;
  const pushed = await push();
  expect(pushed.sentBytes).toBe(BYTES.length - CHUNK);
  expect(countOf(fake, 'PUT /store/part/1')).toBe(0);
  expect(countOf(fake, 'POST /owner/repo.git/info/lfs/objects/batch')).toBe(0);
});

test('starts again when the places of parts have expired', async () => {
  let isExpired = false;
  const fake = await startUploadHub({
    reply(call, response) {
      const isFirst = call === 'PUT /store/part/2' && fake.completed === null;
      if (!isFirst || (isExpired && countOf(fake, 'POST /owner/repo.git/info/lfs/objects/batch') > 0)) return false;
      response.writeHead(isExpired ? 403 : 500).end();
      return true;
    },
  });
  const { push } = setUp(fake);
  await failure(push());
  isExpired = true;
  fake.calls.length = 0;
  expect((await push()).sentBytes).toBe(BYTES.length);
});

test('keeps an existing card unless told otherwise', async () => {
  const fake = await startUploadHub({ files: ['README.md'] });
  const { push } = setUp(fake);
  expect((await push()).isCardWritten).toBe(false);
  expect(fake.commitLines.map(({ key }) => key)).toEqual(['header', 'lfsFile']);
  expect((await push({ replaceCard: true })).isCardWritten).toBe(true);
});

test.each([
  [401, /answered 401: the token \(HF_TOKEN\) is missing, wrong or expired/, 1],
  [403, /answered 403: the token has no write access/, 1],
  [413, /answered 413: the file is larger than the hub accepts/, 1],
  [500, /answered 500: out of order/, 5],
])('reports status %i of the hub', async (status, message, numCalls) => {
  const batch = 'POST /owner/repo.git/info/lfs/objects/batch';
  const fake = await startUploadHub({
    reply(call, response) {
      if (call !== batch) return false;
      response.writeHead(status).end('{"error":"out of order"}');
      return true;
    },
  });
  const error = await failure(setUp(fake).push());
  expect(error).toMatchObject({ code: 'upload_failed', data: { status } });
  expect(error.message).toMatch(message);
  expect(countOf(fake, batch)).toBe(numCalls);
  expect(fake.commitLines).toEqual([]);
});

test('refuses a file that changes during the upload', async () => {
  let path = '';
  const fake = await startUploadHub({
    reply(call) {
      if (call === 'PUT /store/part/1') appendFileSync(path, randomBytes(8));
      return false;
    },
  });
  const setup = setUp(fake);
  path = setup.path;
  const error = await failure(setup.push());
  expect(error.code).toBe('conflict');
  expect(error.message).toContain(`has ${BYTES.length + 8} bytes, was ${BYTES.length}`);
  expect(fake.completed).toBe(null);
  expect(fake.commitLines).toEqual([]);
});

test('sends bytes to a store at a private address only if the operator has named it, and never the token', async () => {
  const store = await startUploadHub();
  const origin = store.endpoint.replace('127.0.0.1', 'localhost');
  const fake = await startUploadHub({
    reply(call, response) {
      if (!call.endsWith('/objects/batch')) return false;
      const upload = {
        href: `${origin}/store/whole`,
        header: { 'x-store': '1' },
      };
      response.end(JSON.stringify({ objects: [{ oid: OID, size: BYTES.length, actions: { upload } }] }));
      return true;
    },
  });
  expect((await failure(setUp(fake).push())).message).toContain(`add ${origin} to RUVLLM_HUB_ORIGINS`);
  expect(store.calls).toEqual([]);
  await setUp(fake, TOKEN, [origin]).push();
  expect(store.calls).toEqual(['PUT /store/whole']);
  expect(store.authorizations).toEqual([undefined]);
});

test('refuses bad input before anything is sent', async () => {
  const fake = await startUploadHub();
  const { hub, path } = setUp(fake);
  const notModel = join(dirname(path), 'text.gguf');
  writeFileSync(notModel, 'no model');
  const record = { sha256: 'd'.repeat(64), type: 'Q8_0', bitsPerWeight: 8, divergence: null, command: null };
  for (const [push, code, message] of [
    [() => setUp(fake, null).push(), 'invalid_option', /requires a token.*HF_TOKEN/],
    [() => hub.pushModel(path, 'no-owner'), 'invalid_option', /expected owner\/repo/],
    [() => hub.pushModel(path, 'owner/repo:Q4_K_M'), 'invalid_option', /is not a repository/],
    [() => hub.pushModel(path, '../x'), 'invalid_option', /is not a hub name/],
    [() => hub.pushModel(`${path}.missing`, 'owner/repo'), 'not_found', /is not a file/],
    [() => hub.pushModel(notModel, 'owner/repo'), 'invalid_model_file', /not a readable GGUF model/],
    [() => hub.pushModel(path, 'owner/repo', { record }), 'hash_mismatch', /the record is of a file with SHA-256 dddd/],
    [() => hub.pushModel(path, 'owner/repo', { baseModel: 'x: y\nz' }), 'invalid_option', /control characters/],
    [() => hub.pushModel(path, 'owner/repo', { recrod: null } as never), 'invalid_option', /unknown option "recrod"/],
  ] as const) {
    const error = await failure(push());
    expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)]);
  }
  expect(fake.calls).toEqual([]);
});

test('an answer that lies about parts is refused', async () => {
  const fake = await startUploadHub({
    reply(call, response) {
      if (!call.endsWith('/objects/batch')) return false;
      const upload = {
        href: `${fake.endpoint}/store/complete`,
        header: { chunk_size: '100000', '1': `${fake.endpoint}/p` },
      };
      response.end(JSON.stringify({ objects: [{ oid: OID, size: BYTES.length, actions: { upload } }] }));
      return true;
    },
  });
  expect((await failure(setUp(fake).push())).message).toContain(
    `offers 1 parts of 100000 bytes for ${BYTES.length} bytes`,
  );
});
