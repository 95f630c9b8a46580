import type { SqlDatabase } from '../../../memory/store/sqlite/sql-database.ts';

/** After which nobody is about to write again: requests come with less between them. */
const IDLE_MS = 500;

/** Moves what is committed from the log into the database when nothing has been written for a while. */
export function checkpointWhenIdle(database: SqlDatabase, idleMs = IDLE_MS): SqlDatabase {
  let timer: NodeJS.Timeout | null = null;
  const checkpoint = (): void => {
    timer = null;
    try {
      database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // The log has it all; what is wrong with the disk is said to who writes next.
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
