import { isSqlError, type SqlDatabase } from './sql-database.ts';

/** What happens once the write is on the disk, and only then. */
export type OnCommit = (effect: () => void) => void;

/** A write; it may run twice, so it has no effect but in the database and through `onCommit`. */
export type Write<T> = (onCommit: OnCommit) => T;

interface Job {
  readonly write: Write<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupCommit {
  /** Resolves when the write is durable. Its refusal is its own and undoes nothing of the others. */
  submit<T>(write: Write<T>): Promise<T>;
  /** Writes what waits, now. */
  flush(): void;
}

/** Writes that wait are made in one transaction, which costs one flush of the disk instead of one each. */
const MAX_JOBS = 256;

/**
 * Writers that come in one turn share a transaction; `defer` says when the turn is over. `onDurable` is called after each that is on
 * the disk, before anybody hears of it.
 */
export function createGroupCommit(
  database: SqlDatabase,
  defer: (run: () => void) => void,
  onDurable: () => void = () => {},
): GroupCommit {
  let waiting: Job[] = [];

  function flush(): void {
    const jobs = waiting;
    waiting = [];
    for (let start = 0; start < jobs.length; start += MAX_JOBS) commit(jobs.slice(start, start + MAX_JOBS));
  }

  function commit(jobs: readonly Job[]): void {
    let outcomes: (() => void)[];
    try {
      outcomes = runTogether(database, jobs);
    } catch (error) {
      // The database gave up the whole transaction: each alone, so that only those fail that must.
      if (jobs.length > 1) for (const job of jobs) commit([job]);
      else jobs[0]!.reject(error);
      return;
    }
    onDurable();
    for (const outcome of outcomes) outcome();
  }

  return {
    flush,
    submit: (write) =>
      new Promise((resolve, reject) => {
        waiting.push({ write, resolve: resolve as (value: unknown) => void, reject });
        if (waiting.length === 1) defer(flush);
      }),
  };
}

function runTogether(database: SqlDatabase, jobs: readonly Job[]): (() => void)[] {
  const outcomes: (() => void)[] = [];
  database.exec('BEGIN IMMEDIATE');
  try {
    for (const job of jobs) outcomes.push(runOne(database, job));
    database.exec('COMMIT');
  } catch (error) {
    try {
      database.exec('ROLLBACK');
    } catch {
      // SQLite has rolled back already.
    }
    throw error;
  }
  return outcomes;
}

function runOne(database: SqlDatabase, { write, resolve, reject }: Job): () => void {
  const effects: (() => void)[] = [];
  database.exec('SAVEPOINT one');
  let value: unknown;
  try {
    value = write((effect) => void effects.push(effect));
  } catch (error) {
    if (isSqlError(error)) throw error;
    database.exec('ROLLBACK TO one; RELEASE one');
    return () => reject(error);
  }
  database.exec('RELEASE one');
  return () => {
    try {
      for (const effect of effects) effect();
      resolve(value);
    } catch (error) {
      reject(error);
    }
  };
}
