import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import * as nodeFiles from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createKeyStore } from '../../server/keys/key-store.ts';
import { openKeyFolder } from './key-folder.ts';

const root = mkdtempSync(join(tmpdir(), 'ruvllm-keys-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const KEY = { name: 'n', tenant: 't', scopes: ['inference'] } as const;
const open = (folder: string) => createKeyStore(openKeyFolder(folder), () => 1000);

test('[K3] a key made by one process opens in another, and is refused there once it is revoked', async () => {
  const folder = join(root, 'shared');
  const [command, server] = [open(folder), open(folder)];
  expect(server.list()).toEqual([]);
  const { key, token } = await command.create(KEY);
  expect(await server.verify(token)).toEqual(key);
  command.revoke(key.id);
  expect(await server.verify(token)).toBeNull();
  expect(server.list()).toEqual([{ ...key, revokedMs: 1000 }]);
});

test('[K3] a record is read again only when its file is another, however often it is asked for', async () => {
  const folder = join(root, 'watched');
  let numOpened = 0;
  const openSync: typeof nodeFiles.openSync = (...args) => {
    if (String(args[0]).endsWith('.json')) numOpened++;
    return nodeFiles.openSync(...args);
  };
  const server = createKeyStore(openKeyFolder(folder, { ...nodeFiles, openSync }), () => 1000);
  const { key, token } = await open(folder).create(KEY);
  for (let i = 0; i < 5; i++) expect(await server.verify(token)).toEqual(key);
  expect(numOpened).toBe(1);
  open(folder).revoke(key.id);
  for (let i = 0; i < 5; i++) expect(await server.verify(token)).toBeNull();
  expect(numOpened).toBe(2);
  rmSync(join(folder, `${key.id}.json`));
  expect(await server.verify(token)).toBeNull();
});

test.skipIf(process.platform === 'win32')('[K1] files are for their owner only, and nothing else is left', async () => {
  const folder = join(root, 'modes');
  const { key } = await open(folder).create(KEY);
  expect(readdirSync(folder).sort()).toEqual([`${key.id}.json`, 'keys.head']);
  expect(statSync(join(folder, `${key.id}.json`)).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

test('an id is never a path', async () => {
  writeFileSync(join(root, 'outside.json'), '{}');
  expect(openKeyFolder(join(root, 'paths')).get('../outside')).toBeNull();
  expect(existsSync(join(root, 'outside.json'))).toBe(true);
});

test('[K9] a damaged record is moved aside: its key is refused, the others work, and it is said', async () => {
  const folder = join(root, 'damaged');
  const { key: good, token: goodToken } = await open(folder).create(KEY);
  const record = openKeyFolder(folder).get(good.id);
  let count = 0;
  for (const text of ['', '{', '[]', 'null', '{"id":"x"}', JSON.stringify({ ...record, scopes: ['root'] })]) {
    const { key, token } = await open(folder).create(KEY);
    writeFileSync(join(folder, `${key.id}.json`), text);
    const server = open(folder);
    expect(await server.verify(token), text).toBeNull();
    expect(await server.verify(goodToken)).toEqual(good);
    expect(server.problems().join()).toContain(key.id);
    // Also after a restart, when the file is gone.
    expect(open(folder).problems()).toHaveLength(++count);
    expect(readdirSync(folder).some((name) => name.startsWith(`${key.id}.json.damaged-`))).toBe(true);
  }
  expect(open(folder).list()).toEqual([good]);
});

test('[K9] no flipped byte gives a key another tenant, scope or state', async () => {
  const folder = join(root, 'flipped');
  const { key, token } = await open(folder).create(KEY);
  const path = join(folder, `${key.id}.json`);
  const bytes = readFileSync(path);
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed[i]! ^= 1;
    writeFileSync(path, changed);
    const found = await open(folder).verify(token);
    if (found !== null) expect([i, found]).toEqual([i, key]);
  }
});

test('[K9] an older copy of a record does not undo a revocation, and a missing record is noticed', async () => {
  const folder = join(root, 'older');
  const { key, token } = await open(folder).create(KEY);
  const path = join(folder, `${key.id}.json`);
  const before = readFileSync(path);
  open(folder).revoke(key.id);
  writeFileSync(path, before);
  expect(await open(folder).verify(token)).toBeNull();
  expect(open(folder).problems()).toHaveLength(1);
  rmSync(path, { force: true });
  expect(open(folder).problems()).toHaveLength(1);
  expect(open(join(root, 'nowhere')).problems()).toEqual([]);
});
