import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import * as files from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type S3Server, S3_KEYS, S3_REGION, startS3Server } from '../../../../test/support/s3-server.ts';
import { TOO_LATE } from '../../../kv-cache/shared-store.ts';
import { createFolderObjects } from './folder-objects.ts';
import type { ObjectStore } from './object-store.ts';
import { createS3Objects } from './s3-objects.ts';
import { openSharedKeys } from './shared-keys.ts';
import { openSharedPages, type SharedPageStoreOptions } from './shared-page-store.ts';

const folders: string[] = [];
const servers: S3Server[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  for (const server of servers.splice(0)) await server.close();
});

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ruvllm-shared-'));
  folders.push(folder);
  return folder;
}

async function startServer(options?: { pageSize?: number }): Promise<{ server: S3Server; objects: ObjectStore }> {
  const server = await startS3Server(options);
  servers.push(server);
  const credentials = { ...S3_KEYS, sessionToken: null };
  const place = {
    type: 's3',
    endpoint: server.url,
    region: S3_REGION,
    bucket: 'b',
    prefix: 'p/',
    credentials,
  } as const;
  return { server, objects: createS3Objects(place) };
}

const NAMESPACE = { tenant: 'tenant', modelHash: 'model', adapterHash: null, policy: 'f16' };
const never = new AbortController().signal;
const page = (fill: number, sizeBytes = 1000): Uint8Array => new Uint8Array(sizeBytes).fill(fill);

function open(objects: ObjectStore, options: Partial<SharedPageStoreOptions> = {}) {
  const warnings: string[] = [];
  const store = openSharedPages({
    objects,
    masterKey: new Uint8Array(32).fill(1),
    limitBytes: 2 ** 30,
    timeoutMs: 60_000,
    warn: (message) => warnings.push(message),
    ...options,
  });
  const space = store.open(NAMESPACE);
  const keyOf = (token: number): string => space.childKey(space.rootKey, [token]);
  return { store, space, keyOf, warnings };
}

const STORAGES: Record<string, () => Promise<ObjectStore>> = {
  folder: async () => createFolderObjects(createFolder()),
  S3: async () => (await startServer({ pageSize: 2 })).objects,
};

for (const [kind, create] of Object.entries(STORAGES)) {
  test(`${kind}: [SH1] another node with the same key reads a page as written; one with another key, tenant or model has other names`, async () => {
    const objects = await create();
    const a = open(objects);
    expect(await a.space.write(a.keyOf(1), 'packed', page(7))).toBe(true);
    const b = open(objects);
    expect(b.space.isStored(b.keyOf(1))).toBe(false);
    expect(await b.space.read(b.keyOf(1), 1000, never)).toEqual({ tier: 'packed', bytes: Buffer.from(page(7)) });
    expect(await b.space.read(b.keyOf(2), 1000, never)).toBe(null);
    const strangers = [
      open(objects, { masterKey: new Uint8Array(32).fill(2) }).space,
      ...['tenant', 'modelHash', 'adapterHash', 'policy'].map((field) => b.store.open({ ...NAMESPACE, [field]: 'other' })), // prettier-ignore
    ];
    for (const space of strangers) {
      expect(await space.read(space.childKey(space.rootKey, [1]), 1000, never)).toBe(null);
      // Not even under the key of the other, which it cannot compute.
      expect(space.childKey(space.rootKey, [1])).not.toBe(a.keyOf(1));
    }
    expect(b.store.stats()).toMatchObject({ numHits: 1, numCorrupt: 0, numFailedReads: 0 });
  });

  test(`${kind}: [SH2] lists, replaces and deletes objects, and finds no more than the size it was asked for`, async () => {
    const objects = await create();
    for (const name of ['v1/a/1', 'v1/a/2', 'v1/a/3', 'v1/b/1']) await objects.put(name, page(1), never);
    await objects.put('v1/a/1', page(2, 10), never);
    const names = async (prefix: string): Promise<string[]> => (await objects.list(prefix, never)).map(({ name }) => name).toSorted(); // prettier-ignore
    expect(await names('v1/a/')).toEqual(['v1/a/1', 'v1/a/2', 'v1/a/3']);
    await objects.delete('v1/a/2', never);
    await objects.delete('v1/a/2', never);
    expect(await names('v1/')).toEqual(['v1/a/1', 'v1/a/3', 'v1/b/1']);
    expect(await names('v2/')).toEqual([]);
    expect([await objects.has('v1/a/1', never), await objects.has('v1/a/2', never)]).toEqual([true, false]);
    expect(await objects.get('v1/a/1', 10, never)).toEqual(Buffer.from(page(2, 10)));
    expect((await objects.get('v1/a/1', 9, never))!.length).toBe(0);
    expect(await objects.get('v1/a/2', 10, never)).toBe(null);
  });

  test(`${kind}: [SH3] a page that is stored already is not written again`, async () => {
    const objects = await create();
    const puts: string[] = [];
    const counted = { ...objects, put: (...put: Parameters<ObjectStore['put']>) => (puts.push(put[0]), objects.put(...put)) }; // prettier-ignore
    const [a, b] = [open(counted), open(counted)];
    for (const node of [a, b, a, b]) expect(await node.space.write(node.keyOf(1), 'float', page(1))).toBe(true);
    expect(puts.length).toBe(1);
  });
}

test('[SH1] tenants have keys of their own, the same at every node', () => {
  const keysOf = (tenant: string) => {
    const { naming, sealing } = openSharedKeys(new Uint8Array(32).fill(1)).tenantKeys(tenant);
    return [naming, sealing].map((key) => key.export().toString('hex'));
  };
  expect(keysOf('a')).toEqual(keysOf('a'));
  expect(new Set([...keysOf('a'), ...keysOf('b')]).size).toBe(4);
});

test('[SH4] the oldest pages are deleted beyond the limit, and temporary files that a killed process left', async () => {
  const folder = createFolder();
  const { store, space, keyOf } = open(createFolderObjects(folder), { limitBytes: 5500 });
  for (let i = 0; i < 5; i++) {
    await space.write(keyOf(i), 'float', page(i));
    for (const [age, token] of [...Array(i + 1).keys()].toReversed().entries()) {
      const name = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((path) => path.endsWith(`${keyOf(token)}.page`)); // prettier-ignore
      if (name !== undefined) utimesSync(join(folder, name), 1e9 - age, 1e9 - age);
    }
  }
  const left = join(folder, 'v1', 'left.0123456789abcdef.tmp');
  writeFileSync(left, 'half a page');
  utimesSync(left, 1e9, 1e9);
  await space.write(keyOf(5), 'float', page(5));
  await space.write(keyOf(6), 'float', page(6));
  await store.close();
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  const has = (token: number): boolean => names.some((name) => name.endsWith(`${keyOf(token)}.page`));
  expect([0, 1, 2, 3, 4, 5, 6].map(has)).toEqual([false, false, true, true, true, true, true]);
  expect(names.some((name) => name.endsWith('.tmp'))).toBe(false);
  expect(store.stats()).toMatchObject({ numEvictions: 2, sizeBytes: 5 * 1040 });
});

test('[SH5] storage that does not answer is suspended after three failures and asked again after a pause', async () => {
  const { server, objects } = await startServer();
  let nowMs = 0;
  const { store, space, keyOf } = open(objects, { now: () => nowMs });
  await space.write(keyOf(1), 'float', page(1));
  server.mode = 'hangs';
  for (let i = 0; i < 3; i++) {
    expect(store.canRead).toBe(true);
    const late = new AbortController();
    const read = space.read(keyOf(1), 1000, late.signal);
    late.abort(TOO_LATE);
    expect(await read).toBe(null);
  }
  expect([store.canRead, store.canWrite]).toEqual([false, true]);
  expect(store.stats()).toMatchObject({ numFailedReads: 3, isReadSuspended: true, lastFailure: `reading a shared page: ${TOO_LATE}` }); // prettier-ignore
  server.mode = 'works';
  const numRequests = server.requests.length;
  expect(await space.read(keyOf(1), 1000, never)).toBe(null);
  expect(server.requests.length).toBe(numRequests);
  nowMs += 30_000;
  expect(await space.read(keyOf(1), 1000, never)).not.toBe(null);
  // A request that its client cancelled says nothing about the storage.
  const cancelled = new AbortController();
  const read = space.read(keyOf(1), 1000, cancelled.signal);
  cancelled.abort('no request waits for it');
  expect(await read).toBe(null);
  expect(store.stats().numFailedReads).toBe(3);
});

test('[SH6] wrong credentials are failures that say so, and nothing is deleted', async () => {
  const { server } = await startServer();
  const credentials = { accessKeyId: 'AKIDTEST', secretAccessKey: 'wrong', sessionToken: null };
  const place = { type: 's3', endpoint: server.url, region: S3_REGION, bucket: 'b', prefix: '', credentials } as const;
  const { store, space, keyOf, warnings } = open(createS3Objects(place));
  expect(await space.write(keyOf(1), 'float', page(1))).toBe(false);
  expect(await space.read(keyOf(1), 1000, never)).toBe(null);
  expect(warnings).toEqual([
    'writing a shared page: HEAD was answered with 403',
    'reading a shared page: GET was answered with 403 SignatureDoesNotMatch',
  ]);
  expect(store.stats()).toMatchObject({ numFailedWrites: 1, numFailedReads: 1, numCorrupt: 0 });
  expect(server.numRefused).toBe(2);
});

test('[SH7] a folder that hangs takes two threads at most, and later calls give up without it', async () => {
  let numOpen = 0;
  const hanging = { ...files, open: () => (numOpen++, new Promise<never>(() => {})) };
  const objects = createFolderObjects(createFolder(), hanging);
  const aborts = Array.from({ length: 6 }, () => new AbortController());
  const reads = aborts.map(({ signal }) => objects.get('v1/x', 10, signal).catch((error: unknown) => error));
  for (const abort of aborts.slice(0, 2)) abort.abort('too long');
  await Promise.all(reads.slice(0, 2));
  await new Promise((resolve) => setImmediate(resolve));
  expect(numOpen).toBe(2);
  for (const abort of aborts) abort.abort('too long');
  expect(await Promise.all(reads)).toEqual(Array(6).fill('too long'));
  expect(numOpen).toBe(2);
});

test('[SH8] a write that fails leaves no temporary file', async () => {
  const folder = createFolder();
  const full = { ...files, rename: () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })) };
  const { store, space, keyOf } = open(createFolderObjects(folder, full));
  expect(await space.write(keyOf(1), 'float', page(1))).toBe(false);
  expect(store.stats()).toMatchObject({ numFailedWrites: 1, lastFailure: 'writing a shared page: ENOSPC' });
  expect(readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(page|tmp)/.test(name))).toEqual([]); // prettier-ignore
});

test('[SH8] a process that dies in the middle of a write leaves no page that readers could see', async () => {
  const folder = createFolder();
  let hasBegun = (): void => {};
  const begun = new Promise<void>((resolve) => (hasBegun = resolve));
  const dying = {
    ...files,
    async open(...args: Parameters<typeof files.open>) {
      const file = await files.open(...args);
      file.writeFile = async (bytes) => {
        await file.write((bytes as Uint8Array).subarray(0, 500));
        hasBegun();
        return new Promise<never>(() => {});
      };
      return file;
    },
  };
  const { space, keyOf } = open(createFolderObjects(folder, dying));
  void space.write(keyOf(1), 'float', page(1));
  await begun;
  const other = open(createFolderObjects(folder));
  expect(await other.space.read(other.keyOf(1), 1000, never)).toBe(null);
  expect(other.store.stats()).toMatchObject({ numMisses: 1, numCorrupt: 0 });
  expect(await other.space.write(other.keyOf(1), 'float', page(1))).toBe(true);
});

test('[SH17] a damaged page, and one under the name of another page, are deleted and written anew', async () => {
  const { server, objects } = await startServer();
  const { store, space, keyOf } = open(objects);
  for (const token of [1, 2]) await space.write(keyOf(token), 'float', page(token));
  const [one, two] = [...server.objects.keys()] as [string, string];
  server.objects.set(one, server.objects.get(two)!);
  expect(await space.read(keyOf(1), 1000, never)).toBe(null);
  await expect.poll(() => server.objects.has(one)).toBe(false);
  expect(store.stats()).toMatchObject({ numCorrupt: 1, numHits: 0 });
  expect(space.isStored(keyOf(1))).toBe(false);
  expect(await space.write(keyOf(1), 'float', page(1))).toBe(true);
  expect((await space.read(keyOf(1), 1000, never))!.bytes).toEqual(Buffer.from(page(1)));
});
