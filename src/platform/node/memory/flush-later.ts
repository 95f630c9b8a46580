import { dirname } from 'node:path';
import { promisify } from 'node:util';
import type { SqlDatabase } from '../../../memory/store/sqlite/sql-database.ts';
import { toFileError } from '../files/file-errors.ts';
import { type Files, flushFolder } from '../sealing/atomic-files.ts';

/**
 * Lets commits return before they are on disk, and flushes the log in another thread: a flush blocks for milliseconds. Callers
 * await `flush` before they report a commit.
 */
export function flushLater(database: SqlDatabase, files: Files, databasePath: string): SqlDatabase {
  const path = `${databasePath}-wal`;
  const flushHandle = promisify(files.fdatasync);
  let handle: number | null = null;
  /** After a failed flush it is unknown what is on disk, and the next one would succeed. */
  let isInDoubt = false;
  database.exec('PRAGMA synchronous = NORMAL');

  function open(): number {
    handle = files.openSync(path, 'r+');
    flushFolder(files, dirname(path)); // the log is a new file
    return handle;
  }

  return {
    ...database,
    async flush() {
      if (isInDoubt) {
        // Moves everything into the database, which SQLite flushes, and truncates the log.
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
