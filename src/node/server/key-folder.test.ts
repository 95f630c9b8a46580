import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
    numOpened++;
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
  expect(readdirSync(folder)).toEqual([`${key.id}.json`]);
  expect(statSync(join(folder, `${key.id}.json`)).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
});

test('an id is never a path, and a damaged record is an error, not a missing key', async () => {
  const folder = join(root, 'damaged');
  const records = openKeyFolder(folder);
  const { key, token } = await open(folder).create(KEY);
  writeFileSync(join(root, 'outside.json'), '{}');
  expect(records.get('../outside')).toBeNull();
  expect(existsSync(join(root, 'outside.json'))).toBe(true);
  for (const text of [
    '',
    '{',
    '[]',
    'null',
    '{"id":"x"}',
    JSON.stringify({ ...records.get(key.id), scopes: ['root'] }),
  ]) {
    writeFileSync(join(folder, `${key.id}.json`), text);
    await expect(open(folder).verify(token), text).rejects.toMatchObject({ code: 'io' });
  }
  const other = '0'.repeat(18);
  const { key: good } = await open(folder).create(KEY);
  writeFileSync(join(folder, `${other}.json`), JSON.stringify(records.get(good.id)));
  expect(() => records.get(other)).toThrow(/not the record of a key/); // a copy under another name
});
