import type { SqlDatabase, SqlRow, SqlValue } from '../../../memory/store/sqlite/sql-database.ts';
import { toSqlError } from '../../../memory/store/sqlite/sql-database.ts';
import { createStatementCache } from './statement-cache.ts';

/** What both drivers can do; each answer is read to its end, since a half-read one would hold its lock. */
export interface RawDatabase<S> {
  exec(sql: string): void;
  prepare(sql: string): S;
  run(statement: S, values: readonly SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  all(statement: S, values: readonly SqlValue[]): readonly SqlRow[];
  finalize(statement: S): void;
  close(): void;
}

/** Around every write: to compile them again takes longer than to run them. */
const COMPILED: ReadonlySet<string> = new Set(['BEGIN IMMEDIATE', 'COMMIT', 'SAVEPOINT one', 'RELEASE one']);

/** The database of a driver, with our errors, and statements that are compiled once. */
export function wrapDatabase<S>(raw: RawDatabase<S>, isDiskFull: () => boolean): SqlDatabase {
  const cache = createStatementCache((sql) => raw.prepare(sql), (statement) => raw.finalize(statement)); // prettier-ignore
  function guard<T>(run: () => T, sql?: string): T {
    try {
      return run();
    } catch (error) {
      if (sql !== undefined) cache.drop(sql);
      throw toSqlError(error, isDiskFull);
    }
  }
  return {
    exec: (sql) =>
      COMPILED.has(sql) ? void guard(() => raw.run(cache.obtain(sql), []), sql) : guard(() => raw.exec(sql)),
    prepare: (sql) => ({
      run: (...values) =>
        guard(() => {
          const { changes, lastInsertRowid } = raw.run(cache.obtain(sql), values);
          return { numChanges: Number(changes), lastRow: Number(lastInsertRowid) };
        }, sql),
      all: (...values) => guard(() => raw.all(cache.obtain(sql), values), sql),
    }),
    close: () =>
      guard(() => {
        cache.clear();
        raw.close();
      }),
  };
}

/**
 * Before anything else: ours alone (the driver in WebAssembly has no shared memory for the WAL), every commit flushed (by flush-later.ts). A page of
 * 4 KiB holds a record without its vector; memory stays small. What is committed goes into the database when nobody writes
 * (checkpoint-when-idle.ts), for that takes many milliseconds in which nothing is answered; else with every 32 MiB.
 */
export const OPENING_PRAGMAS = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA foreign_keys = OFF;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16384;
  PRAGMA wal_autocheckpoint = 8000;
`;
