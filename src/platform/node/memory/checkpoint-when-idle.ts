import type { SqlDatabase } from '../../../memory/store/sqlite/sql-database.ts';

/** Longer than the pauses between requests. */
const IDLE_MS = 500;

/** Moves committed data from the log into the database after a pause in writing. */
export function checkpointWhenIdle(database: SqlDatabase, idleMs = IDLE_MS): SqlDatabase {
  let timer: NodeJS.Timeout | null = null;
  const checkpoint = (): void => {
    timer = null;
    try {
      database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // The log has everything; the next write reports the disk's error.
    }
  };
  return {
    ...database,
    exec(sql) {
      database.exec(sql);
      if (sql !== 'COMMIT') return;
      if (timer === null) timer = setTimeout(checkpoint, idleMs).unref();
      else timer.refresh();
    },
    close() {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      database.close();
    },
  };
}
