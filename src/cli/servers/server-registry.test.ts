import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { listServers, registerServer } from './server-registry.ts';

const root = mkdtempSync(join(tmpdir(), 'ruvllm-servers-'));
afterAll(() => rmSync(root, { recursive: true }));

test('lists a server until it unregisters, in a file that only its owner can read', () => {
  const folder = join(root, 'servers');
  expect(listServers(folder)).toEqual([]);
  const unregister = registerServer('http://127.0.0.1:8080', 5, folder);
  const [name] = readdirSync(folder);
  expect(name).toBe(`${process.pid}-8080.json`);
  if (process.platform !== 'win32') expect(statSync(join(folder, name!)).mode & 0o777).toBe(0o600);
  expect(listServers(folder)).toMatchObject([{ url: 'http://127.0.0.1:8080', startedMs: 5 }]);
  unregister();
  expect(listServers(folder)).toEqual([]);
});

test('removes the record of a killed server and leaves other files alone', () => {
  const folder = join(root, 'killed');
  registerServer('http://127.0.0.1:1', 1, folder);
  const dead = {
    url: 'http://127.0.0.1:2',
    startedMs: 2,
    process: { host: hostname(), pid: 2 ** 22, startToken: '1' },
  };
  writeFileSync(join(folder, '9-2.json'), JSON.stringify(dead));
  writeFileSync(join(folder, '9-3.json'), 'not JSON');
  writeFileSync(join(folder, '9-4.json'), JSON.stringify({ ...dead, url: 'file:///etc/passwd' }));
  writeFileSync(join(folder, 'other.txt'), '');
  expect(listServers(folder).map(({ url }) => url)).toEqual(['http://127.0.0.1:1']);
  expect(readdirSync(folder).sort()).toEqual([`${process.pid}-1.json`, '9-3.json', '9-4.json', 'other.txt'].sort());
});

test('ignores a folder that cannot be written', () => {
  const file = join(root, 'file');
  writeFileSync(file, '');
  expect(() => registerServer('http://127.0.0.1:1', 1, join(file, 'below'))()).not.toThrow();
});
