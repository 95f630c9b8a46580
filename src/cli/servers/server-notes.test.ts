import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { noteServer, readServerNotes } from './server-notes.ts';

const root = mkdtempSync(join(tmpdir(), 'ruvllm-notes-'));
afterAll(() => rmSync(root, { recursive: true }));

test('a server that runs is found until it ends, and only its owner can read where', () => {
  const folder = join(root, 'servers');
  expect(readServerNotes(folder)).toEqual([]);
  const forget = noteServer('http://127.0.0.1:8080', 5, folder);
  const [name] = readdirSync(folder);
  expect(name).toBe(`${process.pid}-8080.json`);
  if (process.platform !== 'win32') expect(statSync(join(folder, name!)).mode & 0o777).toBe(0o600);
  expect(readServerNotes(folder)).toMatchObject([{ url: 'http://127.0.0.1:8080', startedMs: 5 }]);
  forget();
  expect(readServerNotes(folder)).toEqual([]);
});

test('one that was killed is taken away; what is no note is left alone', () => {
  const folder = join(root, 'killed');
  noteServer('http://127.0.0.1:1', 1, folder);
  const dead = {
    url: 'http://127.0.0.1:2',
    startedMs: 2,
    process: { host: hostname(), pid: 2 ** 22, startToken: '1' },
  };
  writeFileSync(join(folder, '9-2.json'), JSON.stringify(dead));
  writeFileSync(join(folder, '9-3.json'), 'not JSON');
  writeFileSync(join(folder, '9-4.json'), JSON.stringify({ ...dead, url: 'file:///etc/passwd' }));
  writeFileSync(join(folder, 'other.txt'), '');
  expect(readServerNotes(folder).map(({ url }) => url)).toEqual(['http://127.0.0.1:1']);
  expect(readdirSync(folder).sort()).toEqual([`${process.pid}-1.json`, '9-3.json', '9-4.json', 'other.txt'].sort());
});

test('a folder that cannot be written is no reason not to serve', () => {
  const file = join(root, 'file');
  writeFileSync(file, '');
  expect(() => noteServer('http://127.0.0.1:1', 1, join(file, 'below'))()).not.toThrow();
});
