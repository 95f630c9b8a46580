import { type ErrorCode, messageOf, RuvLLMError } from '../../../core/errors.ts';

export type SqlValue = number | string | Uint8Array | null;
export type SqlRow = Readonly<Record<string, SqlValue>>;

interface SqlStatement {
  run(...values: readonly SqlValue[]): { readonly numChanges: number; readonly lastRow: number };
  all(...values: readonly SqlValue[]): readonly SqlRow[];
}

/** An exclusive database. Its errors come from `toSqlError`. */
export interface SqlDatabase {
  exec(sql: string): void;
  /** Compiles the same text once. */
  prepare(sql: string): SqlStatement;
  /** Resolves when everything committed is on disk. Default: each commit is durable when it returns. */
  flush?(): Promise<void>;
  close(): void;
}

/** By SQLite's message, because one of the drivers has no codes. */
const CODES: readonly (readonly [RegExp, ErrorCode])[] = [
  [/database or disk is full/i, 'disk_full'],
  [/is locked|busy/i, 'conflict'],
  [
    /I\/O error|malformed|not a database|unable to open|could not open|could not reset|readonly|read-only|out of memory|corrupt|cannot hold BLOB/i,
    'io',
  ],
];

/** An error of the database, marked by `data.sqlite`. */
export function toSqlError(error: unknown, isDiskFull: () => boolean = () => false): RuvLLMError {
  if (error instanceof RuvLLMError) return error;
  const reason = messageOf(error);
  const code = CODES.find(([pattern]) => pattern.test(reason))?.[1] ?? 'internal';
  return new RuvLLMError(code === 'io' && isDiskFull() ? 'disk_full' : code, `the memory's database: ${reason}`, {
    cause: error,
    data: { sqlite: reason },
  });
}

export function isSqlError(error: unknown): boolean {
  return !(error instanceof RuvLLMError) || error.data['sqlite'] !== undefined;
}

/** Runs all of `run` or nothing. */
export function inTransaction<T>(database: SqlDatabase, run: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const value = run();
    database.exec('COMMIT');
    return value;
  } catch (error) {
    try {
      database.exec('ROLLBACK');
    } catch {
      // SQLite has rolled back already.
    }
    throw error;
  }
}
