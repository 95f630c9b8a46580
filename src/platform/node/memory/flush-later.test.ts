import * as nodeFiles from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import type { Files } from '../sealing/atomic-files.ts';
import { flushLater } from './flush-later.ts';
import { newFolder } from './memory-setup.contract.ts';

/** A log of which each flush and each statement is noted; `failing` of the next flushes fail. */
function createDisk() {
  const folder = newFolder();
  nodeFiles.mkdirSync(folder, { recursive: true });
  const path = join(folder, 'memory.db');
  const names = new Map<number, string>();
  nodeFiles.writeFileSync(`${path}-wal`, '');
  const log: string[] = [];
  const disk = { log, failing: 0, database: null as never as ReturnType<typeof flushLater> };
  const fdatasync = (handle: number, done: (error: Error | null) => void): void => {
    log.push(`flush ${names.get(handle)}`);
    done(disk.failing-- > 0 ? Object.assign(new Error('planted'), { code: 'EIO' }) : null);
  };
  const openSync = (opened: string, flags: string): number => {
    const handle = nodeFiles.openSync(opened, flags);
    names.set(handle, basename(opened));
    return handle;
  };
  const raw = { exec: (sql: string) => void log.push(sql), prepare: () => ({}) as never, close: () => void log.push('close') }; // prettier-ignore
  disk.database = flushLater(raw, { ...nodeFiles, fdatasync, openSync } as unknown as Files, path);
  return disk;
}

test('[MS34] a commit does not flush, and a flush is one of the log', async () => {
  const { database, log } = createDisk();
  expect(log).toEqual(['PRAGMA synchronous = NORMAL']);
  database.exec('COMMIT');
  await database.flush!();
  await database.flush!();
  expect(log.slice(1)).toEqual(['COMMIT', 'flush memory.db-wal', 'flush memory.db-wal']);
  database.close();
  expect(log.at(-1)).toBe('close');
});

test('[MS34] after a flush that failed the log is not trusted any more', async () => {
  const disk = createDisk();
  disk.failing = 1;
  await expect(disk.database.flush!()).rejects.toMatchObject({ code: 'io' });
  await disk.database.flush!();
  await disk.database.flush!();
  expect(disk.log.slice(2)).toEqual(['PRAGMA wal_checkpoint(TRUNCATE)', 'flush memory.db-wal']);
});
