import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { idOf, recordOf } from '../../../memory/store/store-setup.contract.ts';
import type { MemoryStore } from '../../../memory/types.ts';
import { newFolder, openAt } from './memory-setup.contract.ts';

const match = async (store: MemoryStore, text: string): Promise<string[]> =>
  (await store.match('alpha', { kinds: ['fact'], text, k: 10 })).map(({ record }) => record.id);
const filesOf = (folder: string): string[] =>
  existsSync(join(folder, 'lexical'))
    ? readdirSync(join(folder, 'lexical'), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.terms'))
        .map((name) => join(folder, 'lexical', name))
    : [];

test('[MS36] a saved lexical index catches up with writes that came after it', async () => {
  const folder = newFolder();
  const first = openAt(folder).store;
  await first.put([1, 2, 3].map((i) => recordOf(i, { body: { text: `canary number ${i}` } })));
  expect(await match(first, 'canary')).toHaveLength(3);
  await first.close();
  const [path] = filesOf(folder);
  const old = readFileSync(path!);
  expect(old.includes('canary')).toBe(false);
  const second = openAt(folder).store;
  await second.put([recordOf(2, { body: { text: 'a heron' } }), recordOf(4, { body: { text: 'canary number 4' } })]);
  await second.delete('alpha', [idOf(1)]);
  expect((await match(second, 'canary')).sort()).toEqual([idOf(3), idOf(4)]);
  await second.close();
  // As after a crash before the save.
  writeFileSync(path!, old);
  const third = openAt(folder).store;
  expect((await match(third, 'canary')).sort()).toEqual([idOf(3), idOf(4)]);
  expect(await match(third, 'heron')).toEqual([idOf(2)]);
  await third.checkIntegrity();
  await third.close();
});

test('[MS36] a damaged lexical index is rebuilt', async () => {
  const folder = newFolder();
  const first = openAt(folder).store;
  await first.put([recordOf(1, { body: { text: 'canary' } })]);
  await match(first, 'canary');
  await first.close();
  const [path] = filesOf(folder);
  const bytes = readFileSync(path!);
  bytes[bytes.length - 1]! ^= 1;
  writeFileSync(path!, bytes);
  const second = openAt(folder).store;
  expect(await match(second, 'canary')).toEqual([idOf(1)]);
  await second.close();
});

test('[MS36] erasing a tenant deletes its lexical indexes', async () => {
  const folder = newFolder();
  const first = openAt(folder).store;
  for (const tenant of ['alpha', 'beta']) await first.put([recordOf(1, { tenant, body: { text: 'canary' } })]);
  await match(first, 'canary');
  await first.match('beta', { kinds: ['fact'], text: 'canary', k: 1 });
  await first.close();
  expect(filesOf(folder)).toHaveLength(2);
  const second = openAt(folder).store;
  await match(second, 'canary');
  await second.eraseTenant('alpha');
  expect(filesOf(folder)).toHaveLength(1);
  await second.close();
  expect(filesOf(folder)).toHaveLength(1);
});
