import type { SqlDatabase } from '../../memory/store/sqlite/sql-database.ts';
import { AUTO_CHECKPOINT_PAGES } from '../../platform/node/memory/sqlite-driver.ts';

/** Moves of committed data from the log into the database file. */
export interface Checkpoints {
  /** Moves everything now, then nothing until `release`, which returns whether the file stayed as it was. */
  hold(): () => boolean;
}

/** Lets checkpoints be held back, so that the database file can be copied. */
export function withCheckpoints(database: SqlDatabase): { database: SqlDatabase; checkpoints: Checkpoints } {
  let numHeld = 0;
  let numForced = 0;
  return {
    database: {
      ...database,
      exec(sql) {
        const isCheckpoint = sql.startsWith('PRAGMA wal_checkpoint');
        if (isCheckpoint && numHeld > 0) {
          if (!sql.includes('TRUNCATE')) return; // it can wait
          numForced++; // after a failed flush: durability goes before the copy
        }
        database.exec(sql);
      },
    },
    checkpoints: {
      hold() {
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
        database.exec('PRAGMA wal_autocheckpoint = 0');
        numHeld++;
        const before = numForced;
        return () => {
          numHeld--;
          if (numHeld === 0) database.exec(`PRAGMA wal_autocheckpoint = ${AUTO_CHECKPOINT_PAGES}`);
          return numForced === before;
        };
      },
    },
  };
}
