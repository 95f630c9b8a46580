import * as nodeFiles from 'node:fs';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Files } from './atomic-files.ts';
import { openKeyRing, type KeyRing, type TenantKeys } from './key-ring.ts';
import { readOrCreateMasterKey, setAsideDamagedMasterKey } from './master-key.ts';

let root: string;
let numFolders = 0;
beforeAll(() => (root = mkdtempSync(join(tmpdir(), 'ruvllm-keys-'))));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const master = new Uint8Array(32).fill(3);
const newPath = (): string => join(root, `path-${numFolders++}`);
const openAt = (folder: string, files: Files = nodeFiles, key = master): KeyRing => openKeyRing(files, folder, key);
const bytesOf = (keys: TenantKeys): string[] => [keys.sealing, keys.naming].map((key) => key.export().toString('hex'));
const keyFiles = (folder: string): string[] =>
  readdirSync(join(folder, 'keys')).map((name) => join(folder, 'keys', name));

describe('keys of tenants', () => {
  test('[SP4] each tenant has two keys of its own, the same whenever they are asked for', () => {
    const folder = newPath();
    const ring = openAt(folder);
    expect(ring.findKeys('a')).toBeNull();
    expect(existsSync(folder)).toBe(false);
    const keys = [...bytesOf(ring.keysOf('a')), ...bytesOf(ring.keysOf('b'))];
    expect(new Set(keys).size).toBe(4);
    const again = openAt(folder);
    expect([...bytesOf(again.findKeys('a')!), ...bytesOf(again.keysOf('b'))]).toEqual(keys);
    expect(keyFiles(folder)).toHaveLength(2);
    for (const path of keyFiles(folder)) expect(statSync(path).mode & 0o777).toBe(0o600);
    const stored = Buffer.concat(keyFiles(folder).map((path) => readFileSync(path))).toString('hex');
    for (const key of keys) expect(stored).not.toContain(key);
  });

  test('[SP9] of two that make the key at once, both use that of the first', () => {
    const folder = newPath();
    let first: string[] = [];
    const ring = openAt(folder, {
      ...nodeFiles,
      linkSync(from, to) {
        first = bytesOf(openAt(folder).keysOf('a')); // the other one is quicker by this much
        nodeFiles.linkSync(from, to);
      },
    });
    expect(bytesOf(ring.keysOf('a'))).toEqual(first);
    expect(keyFiles(folder)).toHaveLength(1);
  });

  test('where there are no hard links, a key is made all the same, and never twice', () => {
    const folder = newPath();
    const linkSync = (): never => {
      throw Object.assign(new Error('no links'), { code: 'EPERM' });
    };
    const keys = bytesOf(openAt(folder, { ...nodeFiles, linkSync }).keysOf('a'));
    expect(bytesOf(openAt(folder).keysOf('a'))).toEqual(keys);
    let other: string[] = [];
    const late = openAt(newPath(), nodeFiles);
    const racing = openAt(join(root, `path-${numFolders - 1}`), {
      ...nodeFiles,
      linkSync() {
        other = bytesOf(late.keysOf('b'));
        return linkSync();
      },
    });
    expect(bytesOf(racing.keysOf('b'))).toEqual(other);
  });

  test.each([
    ['cut short', (path: string) => truncateSync(path, 40)],
    ['too long', (path: string) => writeFileSync(path, 'x', { flag: 'a' })],
    ['that of another tenant', (path: string) => copyFileSync(otherKey(path), path)],
  ])('[SP3] a key file that is %s is refused and kept', (_, damage) => {
    const folder = newPath();
    const ring = openAt(folder);
    ring.keysOf('a');
    ring.keysOf('b');
    const path = join(folder, 'keys', `${ring.idOf('a')}.key`);
    damage(path);
    const before = readFileSync(path);
    expect(() => ring.keysOf('a')).toThrow(`the key file ${path} cannot be decrypted with this master key`);
    expect(() => openAt(folder).findKeys('a')).toThrow('cannot be decrypted');
    expect(readFileSync(path)).toEqual(before);
  });

  test('[SP3] another master key does not open a key', () => {
    const folder = newPath();
    const ring = openAt(folder);
    ring.keysOf('a');
    const other = openAt(folder, nodeFiles, new Uint8Array(32).fill(4));
    expect(other.checkValue).not.toBe(ring.checkValue);
    expect(other.idOf('a')).not.toBe(ring.idOf('a'));
    copyFileSync(keyFiles(folder)[0]!, join(folder, 'keys', `${other.idOf('a')}.key`));
    expect(() => other.keysOf('a')).toThrow('cannot be decrypted');
  });

  test('[SP10] an erased key is gone for whoever holds the ring, and the next one is new', () => {
    const folder = newPath();
    const [ring, other] = [openAt(folder), openAt(folder)];
    const before = bytesOf(ring.keysOf('a'));
    expect(bytesOf(other.keysOf('a'))).toEqual(before);
    ring.erase('a');
    expect(keyFiles(folder)).toEqual([]);
    expect([ring.findKeys('a'), other.findKeys('a')]).toEqual([null, null]);
    const after = bytesOf(other.keysOf('a'));
    expect(after).not.toEqual(before);
    expect(bytesOf(ring.keysOf('a'))).toEqual(after);
    openAt(newPath()).erase('never there');
  });

  function otherKey(path: string): string {
    return keyFiles(join(path, '..', '..')).find((name) => name !== path)!;
  }
});

describe('master key', () => {
  test('[SP11] it is made once, for its owner only, and found again', () => {
    const path = join(newPath(), 'deep', 'master.key');
    const key = readOrCreateMasterKey(path);
    expect(key).toHaveLength(32);
    expect(readOrCreateMasterKey(path)).toEqual(key);
    expect(Buffer.from(key).equals(readOrCreateMasterKey(newPath()))).toBe(false);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(path, '..'))).toEqual(['master.key']);
    const link = newPath();
    symlinkSync(path, link); // as secrets are mounted into containers
    expect(readOrCreateMasterKey(link)).toEqual(key);
  });

  test('[SP11] of two that make it at once, both use that of the first', () => {
    const path = newPath();
    let first: Uint8Array | null = null;
    const linkSync: Files['linkSync'] = (from, to) => {
      first = readOrCreateMasterKey(path);
      nodeFiles.linkSync(from, to);
    };
    expect(readOrCreateMasterKey(path, { ...nodeFiles, linkSync })).toEqual(first);
  });

  test.each([0, 31, 33, 64])(
    '[SP11] a file of %i bytes is refused and kept, and its content not shown',
    (sizeBytes) => {
      const path = newPath();
      writeFileSync(path, 's'.repeat(sizeBytes));
      expect(() => readOrCreateMasterKey(path)).toThrow(
        `the master key ${path} has ${sizeBytes} bytes; 32 are required`,
      );
      expect(readFileSync(path, 'utf8')).toBe('s'.repeat(sizeBytes));
    },
  );

  test('[SP11] a folder, and one that cannot be made, are typed errors', () => {
    expect(() => readOrCreateMasterKey(root)).toThrow('is not a file');
    const file = newPath();
    writeFileSync(file, '');
    expect(() => readOrCreateMasterKey(join(file, 'key'))).toThrow(expect.objectContaining({ name: 'RuvLLMError' }));
  });

  test.each([0, 16, 33])(
    '[SP13] a file of %i bytes is moved aside with its content, and a new key is made',
    (sizeBytes) => {
      const path = join(newPath(), 'master.key');
      mkdirSync(join(path, '..'));
      writeFileSync(path, 's'.repeat(sizeBytes), { mode: 0o600 });
      const aside = `${path}.damaged-5`;
      expect(setAsideDamagedMasterKey(path, nodeFiles, () => 5)).toBe(
        `the master key ${path} has ${sizeBytes} bytes; 32 are required: moved to ${aside}. Data encrypted with it cannot be read until the key is put back`,
      );
      expect(readFileSync(aside, 'utf8')).toBe('s'.repeat(sizeBytes));
      expect(readOrCreateMasterKey(path)).toHaveLength(32);
      for (const file of [path, aside]) expect(statSync(file).mode & 0o777).toBe(0o600);
      expect(readdirSync(join(path, '..')).sort()).toEqual(['master.key', 'master.key.damaged-5']);
    },
  );

  test('[SP13] whole keys, missing files and folders stay, and a file that cannot be moved is reported', () => {
    const path = newPath();
    expect(setAsideDamagedMasterKey(path)).toBeNull();
    const key = readOrCreateMasterKey(path);
    expect(setAsideDamagedMasterKey(path)).toBeNull();
    expect(readOrCreateMasterKey(path)).toEqual(key);
    expect(setAsideDamagedMasterKey(root)).toBeNull();
    writeFileSync(path, '');
    const renameSync = (): never => {
      throw Object.assign(new Error('read-only'), { code: 'EROFS' });
    };
    const problem = setAsideDamagedMasterKey(path, { ...nodeFiles, renameSync });
    expect(problem).toContain('has 0 bytes; 32 are required and cannot be moved aside: ');
    expect(problem).toContain('EROFS');
  });

  test('[SP13] a key that another process makes or repairs meanwhile stays in its place', () => {
    const path = newPath();
    writeFileSync(path, '');
    let key: Uint8Array | null = null;
    const renameSync: Files['renameSync'] = (from, to) => {
      nodeFiles.rmSync(from);
      key = readOrCreateMasterKey(path);
      nodeFiles.renameSync(from, to);
    };
    expect(setAsideDamagedMasterKey(path, { ...nodeFiles, renameSync })).toBeNull();
    expect(readOrCreateMasterKey(path)).toEqual(key);
    writeFileSync(path, '');
    let numLooks = 0;
    const statSync = ((...given: Parameters<typeof nodeFiles.statSync>) => {
      if (++numLooks === 2) writeFileSync(path, key!);
      return nodeFiles.statSync(...given);
    }) as Files['statSync'];
    expect(setAsideDamagedMasterKey(path, { ...nodeFiles, statSync })).toBeNull();
    expect(readOrCreateMasterKey(path)).toEqual(key);
  });
});
