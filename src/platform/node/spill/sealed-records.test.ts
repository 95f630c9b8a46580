import * as nodeFiles from 'node:fs';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Files } from '../sealing/atomic-files.ts';
import { openSealedRecords } from './sealed-records.ts';
import { openSpillFolder } from './spill-folder.ts';

let root: string;
let numFolders = 0;
beforeAll(() => (root = mkdtempSync(join(tmpdir(), 'ruvllm-records-'))));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const masterKey = new Uint8Array(32).fill(7);
const newFolder = (): string => join(root, `folder-${numFolders++}`);
const openAt = (folder: string, files: Files = nodeFiles) => openSealedRecords({ folder, masterKey }, files);
const text = (value: string): Uint8Array => Buffer.from(value);
const filesIn = (folder: string, end = ''): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile() && path.endsWith(end));

test('[SP12] records are found by tenant, kind and name, also after opening again', () => {
  const folder = newFolder();
  const records = openAt(folder);
  expect(records.get('t', 'session', 'a')).toBeNull();
  expect(records.list('t', 'session')).toEqual([]);
  expect(records.delete('t', 'session', 'a')).toBe(false);
  const values: [string, string, string, string][] = [
    ['t', 'session', 'b', 'one'],
    ['t', 'session', 'ä/../x', 'two'],
    ['t', 'session', '', ''],
    ['t', 'other', 'b', 'three'],
    ['u', 'session', 'b', 'four'],
  ];
  for (const [tenant, kind, name, value] of values) records.put(tenant, kind, name, text(value));
  for (const reader of [records, openAt(folder)]) {
    for (const [tenant, kind, name, value] of values) expect(reader.get(tenant, kind, name)).toEqual(text(value));
    expect(reader.list('t', 'session')).toEqual(['', 'b', 'ä/../x']);
    expect(reader.list('u', 'session')).toEqual(['b']);
    expect(reader.list('u', 'other')).toEqual([]);
  }
  records.put('t', 'session', 'b', text('new'));
  expect(records.get('t', 'session', 'b')).toEqual(text('new'));
  expect(records.delete('t', 'session', 'b')).toBe(true);
  expect(records.delete('t', 'session', 'b')).toBe(false);
  expect(openAt(folder).get('t', 'session', 'b')).toBeNull();
  expect(records.list('t', 'session')).toEqual(['', 'ä/../x']);
});

test('[SP12] a record is flushed before it takes its name, and its name after', () => {
  const calls: string[] = [];
  const spy = <K extends 'fsyncSync' | 'renameSync' | 'mkdirSync'>(name: K): Pick<Files, K> =>
    ({
      [name]: (...args: unknown[]) => {
        const isFolder = name === 'fsyncSync' && nodeFiles.fstatSync(args[0] as number).isDirectory();
        calls.push(isFolder ? 'flush folder' : name);
        return (nodeFiles[name] as (...args: unknown[]) => unknown)(...args);
      },
    }) as unknown as Pick<Files, K>;
  const records = openAt(newFolder(), { ...nodeFiles, ...spy('fsyncSync'), ...spy('renameSync'), ...spy('mkdirSync') });
  records.put('t', 'session', 'a', text('first'));
  // The folder of the kind, that of the tenant and that of all records are new: each is an entry in the one above.
  expect(calls.slice(-7)).toEqual(['mkdirSync', 'flush folder', 'flush folder', 'flush folder', 'fsyncSync', 'renameSync', 'flush folder']); // prettier-ignore
  calls.length = 0;
  records.put('t', 'session', 'a', text('second'));
  expect(calls).toEqual(['fsyncSync', 'renameSync', 'flush folder']);
});

test('[SP12] a record that cannot be written is thrown, and the old one stays', () => {
  const folder = newFolder();
  openAt(folder).put('t', 'session', 'a', text('old'));
  for (const name of ['writevSync', 'fsyncSync', 'renameSync'] as const) {
    const fail = (): never => {
      throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    };
    const records = openAt(folder, { ...nodeFiles, [name]: fail });
    expect(() => records.put('t', 'session', 'a', text('new'))).toThrow(expect.objectContaining({ code: 'disk_full' }));
    expect(records.get('t', 'session', 'a')).toEqual(text('old'));
    expect(filesIn(folder, '.tmp')).toEqual([]);
  }
  const large = new Uint8Array(2 ** 24);
  expect(() => openAt(folder).put('t', 'session', 'a', large)).toThrow(
    `a record has ${2 ** 24 + 3} bytes, at most ${2 ** 24}`,
  );
  expect(() => openAt(folder).put('t', 'session', 'x'.repeat(1025), large)).toThrow('1025 bytes');
});

test('[SP12] [SP3] a damaged or exchanged record is thrown, and left out of the list', () => {
  const folder = newFolder();
  const records = openAt(folder);
  records.put('t', 'session', 'a', text('one'));
  const [first] = filesIn(folder, '.record');
  records.put('t', 'session', 'b', text('two'));
  const second = filesIn(folder, '.record').find((path) => path !== first)!;
  copyFileSync(second, first!);
  expect(() => records.get('t', 'session', 'a')).toThrow(`the record ${first} is damaged`);
  expect(records.list('t', 'session')).toEqual(['b']);
  truncateSync(second, 10);
  expect(() => records.get('t', 'session', 'b')).toThrow('is damaged');
  expect(existsSync(second)).toBe(true);
  records.put('t', 'session', 'b', text('three'));
  expect(records.get('t', 'session', 'b')).toEqual(text('three'));
});

test('[SP4] no file or name shows what is in the records', () => {
  const folder = newFolder();
  openAt(folder).put('visible-tenant', 'visible-kind', 'visible-name', text('visible-content'));
  const all = Buffer.concat(filesIn(folder).flatMap((path) => [Buffer.from(path), readFileSync(path)]));
  expect(all.includes('visible')).toBe(false);
  for (const path of filesIn(folder)) expect(statSync(path).mode & 0o777).toBe(0o600);
});

test('[SP10] an erased tenant has no records, also for another who had it open', () => {
  const folder = newFolder();
  const [records, other] = [openAt(folder), openAt(folder)];
  records.put('t', 'session', 'a', text('one'));
  records.put('u', 'session', 'a', text('two'));
  expect(other.get('t', 'session', 'a')).toEqual(text('one'));
  records.eraseTenant('t');
  expect([records.get('t', 'session', 'a'), other.get('t', 'session', 'a')]).toEqual([null, null]);
  expect(filesIn(folder, '.record')).toHaveLength(1);
  expect(records.get('u', 'session', 'a')).toEqual(text('two'));
  // The other one takes the new key, not the erased one it remembers.
  other.put('t', 'session', 'b', text('new'));
  expect(openAt(folder).get('t', 'session', 'b')).toEqual(text('new'));
});

test('[SP7] a folder that is not ours is refused; one with pages in it is shared', () => {
  const folder = newFolder();
  openAt(folder).put('t', 'session', 'a', text('one'));
  expect(() => openSealedRecords({ folder, masterKey: new Uint8Array(32) })).toThrow(
    'is encrypted with another master key',
  );
  expect(() => openSealedRecords({ folder, masterKey: new Uint8Array(31) })).toThrow('must be 32 bytes');
  writeFileSync(join(root, 'file'), '');
  expect(() => openAt(join(root, 'file'))).toThrow('is not a folder');
  const pages = openSpillFolder({ folder, limitBytes: 2 ** 20, masterKey });
  expect(pages.stats().ignored).toEqual([]);
  const space = pages.open({ tenant: 't', modelHash: 'm', adapterHash: null, policy: 'f16' });
  const key = space.childKey(space.rootKey, [1]);
  expect(space.write(key, 'float', text('page'))).toBe(true);
  expect(filesIn(folder, '.key')).toHaveLength(1);
  expect(openAt(folder).get('t', 'session', 'a')).toEqual(text('one'));
});

test('[SP8] what a killed process left is removed at opening', () => {
  const folder = newFolder();
  openAt(folder).put('t', 'session', 'a', text('one'));
  const left = `${filesIn(folder, '.record')[0]}.4194304-00.tmp`; // no process has so high a number
  writeFileSync(left, 'half');
  expect(openAt(folder).list('t', 'session')).toEqual(['a']);
  expect(existsSync(left)).toBe(false);
});
