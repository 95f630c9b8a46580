import { createLruMap } from '../../../memory/common/lru-map.ts';
import { toSqlError, type SqlDatabase, type SqlRow, type SqlValue } from '../../../memory/store/sqlite/sql-database.ts';

/** A driver's database. `all` reads to the end, because a half-read result would hold its lock. */
interface RawDatabase<S> {
  exec(sql: string): void;
  prepare(sql: string): S;
  run(statement: S, values: readonly SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  all(statement: S, values: readonly SqlValue[]): readonly SqlRow[];
  finalize(statement: S): void;
  close(): void;
}

const MAX_STATEMENTS = 128;
/** Used around every write: compiling them takes longer than running them. */
const COMPILED: ReadonlySet<string> = new Set(['BEGIN IMMEDIATE', 'COMMIT', 'SAVEPOINT one', 'RELEASE one']);

/** Wraps a driver's database: errors become `RuvLLMError`, statements are compiled once. */
export function wrapDatabase<S>(raw: RawDatabase<S>, isDiskFull: () => boolean): SqlDatabase {
  const finalize = (statement: S | undefined): void => {
    try {
      if (statement !== undefined) raw.finalize(statement);
    } catch {
      // It repeats the error of its last run.
    }
  };
  /** Compiled statements by text; filters make ever new ones. */
  const cache = createLruMap<S>(MAX_STATEMENTS, finalize);
  const drop = (sql: string): void => {
    finalize(cache.peek(sql));
    cache.delete(sql);
  };
  const obtain = (sql: string): S => {
    const statement = cache.get(sql) ?? raw.prepare(sql);
    cache.set(sql, statement);
    return statement;
  };
  function guard<T>(run: () => T, sql?: string): T {
    try {
      return run();
    } catch (error) {
      if (sql !== undefined) drop(sql); // SQLite keeps a statement's error until it is finalized
      throw toSqlError(error, isDiskFull);
    }
  }
  return {
    exec: (sql) => (COMPILED.has(sql) ? void guard(() => raw.run(obtain(sql), []), sql) : guard(() => raw.exec(sql))),
    prepare: (sql) => ({
      run: (...values) =>
        guard(() => {
          const { changes, lastInsertRowid } = raw.run(obtain(sql), values);
          return { numChanges: Number(changes), lastRow: Number(lastInsertRowid) };
        }, sql),
      all: (...values) => guard(() => raw.all(obtain(sql), values), sql),
    }),
    close: () =>
      guard(() => {
        for (const [sql] of cache.entries()) drop(sql);
        raw.close();
      }),
  };
}

export const AUTO_CHECKPOINT_PAGES = 8000;

/**
 * Exclusive, because the WebAssembly driver has no shared memory for the WAL. Every commit is flushed (flush-later.ts). A page
 * of 4 KiB holds a record without its vector. A checkpoint takes many milliseconds in which nothing is answered, so it runs when
 * the memory is idle (checkpoint-when-idle.ts), and otherwise after every 32 MiB.
 */
export const OPENING_PRAGMAS = `
  PRAGMA locking_mode = EXCLUSIVE;
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA foreign_keys = OFF;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16384;
  PRAGMA wal_autocheckpoint = ${AUTO_CHECKPOINT_PAGES};
`;
