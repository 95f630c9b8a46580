import * as files from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openArchiveFiles } from './archive-files.ts';
import { newFolder, openAt } from './memory-setup.contract.ts';
import type { MemoryFolder } from './memory-folder.ts';

const nameOf = (n: number): string => `${String(n).padStart(12, '0')}-${'0'.repeat(24)}.seg`;

test('[WL15] lists segments from before the opening, by valid names', async () => {
  const folder = newFolder();
  let opened: MemoryFolder | null = null;
  openAt(folder, { openIndexFiles: (given) => ((opened = given), null) });
  const { keys } = opened!;
  const first = openArchiveFiles(files, folder, keys);
  expect(await first.leftBehind()).toEqual([]);
  await first.write(nameOf(1), Buffer.from('one'), 'alpha');
  files.writeFileSync(join(folder, 'archive', 'notes.txt'), 'somebody’s');
  expect(await first.leftBehind()).toEqual([]);
  const second = openArchiveFiles(files, folder, keys);
  await second.write(nameOf(2), Buffer.from('two'), 'alpha');
  expect(await second.leftBehind()).toEqual([nameOf(1)]);
});
