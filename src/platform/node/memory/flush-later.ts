import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { SqlDatabase } from '../../../memory/store/sqlite/sql-database.ts';
import { toFileError } from '../files/file-errors.ts';
import { type Files, flushFolder } from '../sealing/atomic-files.ts';

/**
 * Lets commits return before the disk has them, and flushes the log in another thread: a flush takes milliseconds in which nothing else
 * would be answered. Whoever commits waits for `flush` before telling anybody.
 */
export function flushLater(database: SqlDatabase, files: Files, databasePath: string): SqlDatabase {
  const path = `${databasePath}-wal`;
  const flushHandle = promisify(files.fdatasync);
  let handle: number | null = null;
  /** Of a flush that failed nobody knows what reached the disk, and the next one would say that all is well. */
  let isInDoubt = false;
  database.exec('PRAGMA synchronous = NORMAL');

  function open(): number {
    handle = files.openSync(path, 'r+');
    flushFolder(files, dirname(path)); // the log itself is new
    return handle;
  }

  return {
    ...database,
    async flush() {
      if (isInDoubt) {
        // All of it goes into the database, which is flushed by SQLite itself, and the log begins anew.
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
        isInDoubt = false;
        return;
      }
      try {
        await flushHandle(handle ?? open());
      } catch (error) {
        isInDoubt = true;
        throw toFileError(error, 'flushing', path);
      }
    },
    close() {
      if (handle !== null) files.closeSync(handle);
      handle = null;
      database.close();
    },
  };
}
