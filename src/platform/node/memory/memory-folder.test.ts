import * as nodeFiles from 'node:fs';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { SCHEMA_VERSION } from '../../../memory/store/sqlite/schema.ts';
import { expectRefusal, idOf, recordOf } from '../../../memory/store/store-setup.contract.ts';
import { changeDatabase, contentsOf, DRIVERS, hashesOf, newFolder, openAt } from './memory-setup.contract.ts';

const otherKey = { key: new Uint8Array(32).fill(8) };

async function fill(folder: string, count = 3): Promise<void> {
  const { store } = openAt(folder);
  await store.put(
    Array.from({ length: count }, (_, i) => recordOf(i, { body: `body ${i}`, fields: { source: 'word' } })),
  );
  await store.put([recordOf(1, { tenant: 'beta', body: 'of beta' })]);
  await store.close();
}

async function expectFilled(folder: string, options: Parameters<typeof openAt>[1] = {}): Promise<void> {
  const { store } = openAt(folder, options);
  expect((await store.get('alpha', [idOf(2)]))[0]).toMatchObject({ body: 'body 2', fields: { source: 'word' } });
  expect((await store.get('beta', [idOf(1)]))[0]).toMatchObject({ body: 'of beta' });
  const filter = { fields: [{ field: 'source', is: '=', value: 'word' }] } as const;
  expect(await store.count('alpha', { kinds: ['fact'], filter })).toBe(3);
  await store.checkIntegrity();
  await store.close();
}

describe('keys', () => {
  test.each([
    ['another key', otherKey, 'is encrypted with another master key', 'invalid_option'],
    ['a passphrase', { passphrase: 'guess' }, 'requires a master key, not a passphrase', 'invalid_option'],
    ['a key that is too short', { key: new Uint8Array(31) }, 'must be 32 bytes', 'invalid_option'],
  ])('[MS18] %s is refused and nothing is touched', async (_, key, message, code) => {
    const folder = newFolder();
    await fill(folder);
    const before = hashesOf(folder);
    expect(() => openAt(folder, { masterKey: key })).toThrow(expect.objectContaining({ code, message: expect.stringContaining(message) })); // prettier-ignore
    expect(hashesOf(folder)).toEqual(before);
    await expectFilled(folder);
  });

  test('[MS18] only its passphrase opens a folder, not another one or the bare key', async () => {
    const folder = newFolder();
    const { store } = openAt(folder, { masterKey: { passphrase: 'caf\u00e9 au lait' } });
    await store.put([recordOf(1)]);
    await store.close();
    const before = hashesOf(folder);
    expect(() => openAt(folder, { masterKey: { passphrase: 'cafe au lait' } })).toThrow(
      'is encrypted with another master key',
    );
    expect(() => openAt(folder)).toThrow('requires a passphrase, not a master key');
    for (const passphrase of ['', 'x'.repeat(1025), '\ud800']) {
      expect(() => openAt(folder, { masterKey: { passphrase } })).toThrow('the passphrase must have 1 to 1024 bytes');
    }
    expect(hashesOf(folder)).toEqual(before);
    const again = openAt(folder, { masterKey: { passphrase: 'cafe\u0301 au lait' } }); // the same letters, typed otherwise
    expect((await again.store.get('alpha', [idOf(1)]))[0]).not.toBeNull();
  });

  test('[MS18] a header that asks for too much work is none', async () => {
    const folder = newFolder();
    await openAt(folder, { masterKey: { passphrase: 'p' } }).store.close();
    const path = join(folder, 'memory.json');
    const header = JSON.parse(readFileSync(path, 'utf8')) as { scrypt: { n: number } };
    expect(header.scrypt).toMatchObject({ n: 16, r: 8, p: 1 });
    for (const n of [2 ** 40, 2 ** 21, 3, 0]) {
      for (const name of [path, `${path}.copy`]) writeFileSync(name, JSON.stringify({ ...header, scrypt: { ...header.scrypt, n } })); // prettier-ignore
      expect(() => openAt(folder, { masterKey: { passphrase: 'p' } })).toThrow('is not a RuvLLM header');
    }
  });

  test('[MS19] a newer version is refused and nothing is touched', async () => {
    const folder = newFolder();
    await fill(folder);
    const path = join(folder, 'memory.json');
    const header = readFileSync(path, 'utf8');
    writeFileSync(path, JSON.stringify({ version: SCHEMA_VERSION + 1, whatever: 'else' }));
    const before = hashesOf(folder);
    expect(() => openAt(folder)).toThrow(expect.objectContaining({ code: 'unsupported' }));
    expect(hashesOf(folder)).toEqual(before);
    writeFileSync(path, header);
    await expectFilled(folder);
  });

  test('[MS19] a database that is newer than its header is refused and its rows stay', async () => {
    const folder = newFolder();
    await fill(folder);
    const path = join(folder, 'memory.db');
    const setVersion = (version: number): void => changeDatabase(folder, `PRAGMA user_version = ${version}`);
    setVersion(SCHEMA_VERSION + 1);
    const before = readFileSync(path);
    expect(() => openAt(folder)).toThrow(
      `has version ${SCHEMA_VERSION + 1}, this release reads up to ${SCHEMA_VERSION}`,
    );
    expect(readFileSync(path)).toEqual(before);
    setVersion(SCHEMA_VERSION);
    await expectFilled(folder);
  });

  test('[MS37] moves the database of another application aside and says so', async () => {
    const folder = newFolder();
    await openAt(folder).store.close();
    const path = join(folder, 'memory.db');
    const replaceBy: readonly (() => void)[] = [
      () => changeDatabase(folder, 'CREATE TABLE theirs (x)'),
      () => writeFileSync(path, 'x'.repeat(10_000)),
    ];
    for (const [i, replace] of replaceBy.entries()) {
      rmSync(path);
      replace();
      const { store } = openAt(folder);
      expect(store.state.problem()).toContain(['is not a ruvllm memory', 'has 10000 of'][i]);
      await store.close();
      const aside = [...contentsOf(folder).keys()].filter((name) => /^damaged.*memory\.db$/.test(name));
      expect(aside).toHaveLength(i + 1);
    }
  });

  test('[MS20] a folder without its header and copy is refused: a new one would lock the rest for ever', async () => {
    const folder = newFolder();
    await fill(folder);
    for (const name of ['memory.json', 'memory.json.copy']) rmSync(join(folder, name));
    const before = hashesOf(folder);
    expect(() => openAt(folder)).toThrow(expect.objectContaining({ code: 'io', message: expect.stringContaining('is missing') })); // prettier-ignore
    expect(hashesOf(folder)).toEqual(before);
  });

  test.each([
    ['cut off', '{"version":1,"che'],
    ['empty', ''],
    ['of another kind', '[1]'],
    ['without a key', '{"version":1}'],
  ])(
    '[MS20] a header that is %s is restored from its copy; if both are, they are refused and kept',
    async (_, text) => {
      const folder = newFolder();
      await fill(folder);
      const path = join(folder, 'memory.json');
      const header = readFileSync(path, 'utf8');
      for (const damaged of [path, `${path}.copy`]) {
        writeFileSync(damaged, text);
        await expectFilled(folder);
        expect([readFileSync(path, 'utf8'), readFileSync(`${path}.copy`, 'utf8')]).toEqual([header, header]);
      }
      for (const damaged of [path, `${path}.copy`]) writeFileSync(damaged, text);
      expect(() => openAt(folder)).toThrow(expect.objectContaining({ code: 'io' }));
      expect(readFileSync(path, 'utf8')).toBe(text);
    },
  );

  test('[MS37] a missing database under the keys of its tenants is a loss, not a new memory', async () => {
    const folder = newFolder();
    await fill(folder);
    rmSync(join(folder, 'memory.db'));
    rmSync(join(folder, 'memory.head')); // as a release without a head left it
    const { store } = openAt(folder);
    expect((await store.stats(null)).lost).toContain('memory.db is missing');
    await store.close();
  });

  test('[MS20] a tenant whose key is missing or another’s is an error, and no new key is made', async () => {
    const folder = newFolder();
    await fill(folder);
    const keys = [...contentsOf(folder).keys()].filter((name) => name.startsWith('keys'));
    expect(keys).toHaveLength(2);
    const kept = keys.map((name) => readFileSync(join(folder, name)));
    for (const name of keys) rmSync(join(folder, name));
    const { store } = openAt(folder);
    await expectRefusal(store.get('alpha', [idOf(1)]), 'io', 'is missing');
    await expectRefusal(store.put([recordOf(9)]), 'io', 'is missing');
    await store.close();
    keys.forEach((name, i) => writeFileSync(join(folder, name), kept[1 - i]!));
    const swapped = openAt(folder);
    await expectRefusal(swapped.store.get('alpha', [idOf(1)]), 'io', 'cannot be decrypted');
    await swapped.store.close();
    keys.forEach((name, i) => writeFileSync(join(folder, name), kept[i]!));
    await expectFilled(folder);
  });

  test('[MS21] the second one gets a conflict that names the first; after it, the folder is free', async () => {
    const folder = newFolder();
    const first = openAt(folder);
    await first.store.put([recordOf(1)]);
    for (const driver of DRIVERS) {
      expect(() => openAt(folder, { driver })).toThrow(
        expect.objectContaining({ code: 'conflict', message: `${folder} is in use by process ${process.pid} on ${hostname()}` }), // prettier-ignore
      );
    }
    await first.store.put([recordOf(2)]);
    await first.store.close();
    expect(existsSync(join(folder, 'owner.lock'))).toBe(false);
    expect((await openAt(folder).store.get('alpha', [idOf(2)]))[0]).not.toBeNull();
  });

  test('[MS21] takes over the lock of a killed process, but not of a living one', async () => {
    const folder = newFolder();
    await fill(folder);
    const lock = join(folder, 'owner.lock');
    const owner = { host: hostname(), pid: process.pid, startToken: '1', nonce: 'x' };
    const ago = (ms: number): void => utimesSync(lock, new Date(Date.now() - ms), new Date(Date.now() - ms));
    const hold = (change: object, ageMs: number): void => {
      writeFileSync(lock, JSON.stringify({ ...owner, ...change }));
      mkdirSync(join(folder, 'memory.db.lock'), { recursive: true });
      ago(ageMs);
    };
    hold({ host: 'elsewhere' }, 30_000);
    expect(() => openAt(folder)).toThrow('is in use by process');
    hold({ host: 'elsewhere' }, 70_000);
    await expectFilled(folder);
    hold({ pid: 1, startToken: '' }, 7e6); // alive, however long it was silent
    expect(() => openAt(folder)).toThrow('is in use by process 1');
    hold({ pid: 2 ** 22 + 5 }, 0);
    await expectFilled(folder);
    hold({}, 0); // our number, but of a process that began at another time: one before us
    await expectFilled(folder);
    writeFileSync(lock, 'nonsense');
    expect(() => openAt(folder)).toThrow('is in use by another process');
    ago(70_000);
    await expectFilled(folder);
  });

  test('[MS22] files are for their owner only', async () => {
    const folder = newFolder();
    const { store } = openAt(folder);
    await store.put([recordOf(1)]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of contentsOf(folder).keys()) expect([name, statSync(join(folder, name)).mode & 0o077]).toEqual([name, 0]); // prettier-ignore
  });

  test('[MS20] a folder that cannot be made is a typed error', () => {
    const file = newFolder();
    writeFileSync(file, '');
    expect(() => openAt(join(file, 'memory'))).toThrow(expect.objectContaining({ name: 'RuvLLMError' }));
    expect(() => openAt(file)).toThrow(expect.objectContaining({ name: 'RuvLLMError' }));
  });

  test('[MS20] the same file opens with both drivers', async ({ skip }) => {
    skip(DRIVERS.length < 2, 'needs node:sqlite');
    const folder = newFolder();
    await fill(folder);
    for (const driver of ['node', 'wasm', 'node'] as const) {
      await expectFilled(folder, { driver });
      const { store } = openAt(folder, { driver });
      await store.put([recordOf(50, { body: driver })]);
      await store.close();
    }
    expect((await openAt(folder, { driver: 'wasm' }).store.get('alpha', [idOf(50)]))[0]).toMatchObject({ version: 3 });
  });
});

test('[MS22] rows cannot stand in for each other', async () => {
  const folder = newFolder();
  await fill(folder);
  const copy = join(folder, 'copy');
  copyFileSync(join(folder, 'memory.db'), copy);
  const changes = [
    'UPDATE record SET sealed = (SELECT sealed FROM record WHERE row = 2) WHERE row = 1',
    'UPDATE record SET version = version + 1 WHERE row = 1',
    'UPDATE record SET created_ms = 5 WHERE row = 1',
    'UPDATE record SET expires_ms = 5 WHERE row = 1',
    `UPDATE record SET fields = '{}' WHERE row = 1`,
    'UPDATE record SET kind = 6 WHERE row = 1',
    `UPDATE record SET id = x'018bcfe5680070008000000000000077' WHERE row = 1`,
    'UPDATE record SET tenant = 2 WHERE row = 1',
    'UPDATE record SET sealed = substr(sealed, 1, 20) WHERE row = 1',
    `UPDATE record SET sealed = 'text' WHERE row = 1`,
    'UPDATE record SET seq = seq + 1000 WHERE row = 1',
  ];
  for (const sql of changes) {
    changeDatabase(folder, sql);
    const { store } = openAt(folder);
    const [read] = await store.get('alpha', [idOf(0)]).catch(() => [null]);
    expect(read, sql).toBeNull();
    await expect(store.checkIntegrity(), sql).rejects.toMatchObject({ code: 'io' });
    await store.close();
    copyFileSync(copy, join(folder, 'memory.db'));
  }
  await expectFilled(folder);
});

test('[MS20] nothing of a folder is touched when the disk refuses its lock', async () => {
  const folder = newFolder();
  await fill(folder);
  const before = hashesOf(folder);
  const openSync = ((path: string, flags: string, mode: number) => {
    if (String(path).includes('owner.lock')) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    return nodeFiles.openSync(path, flags, mode);
  }) as typeof nodeFiles.openSync;
  expect(() => openAt(folder, { files: { ...nodeFiles, openSync } })).toThrow(
    expect.objectContaining({ code: 'disk_full' }),
  );
  expect(hashesOf(folder)).toEqual(before);
});
