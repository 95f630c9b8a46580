import { inTransaction, isSqlError, type SqlDatabase } from './sql-database.ts';

/** What happens once the write is committed, before anybody else is asked anything, and only then. */
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
  /** Commits what waits, now. */
  commit(): void;
  /** Resolves when all that is committed is on the disk; rejects with why it is not. */
  flush(): Promise<void>;
}

export interface GroupCommitContext {
  readonly database: SqlDatabase;
  /** Says when a turn is over: writers that come in one share a transaction. */
  readonly defer: (run: () => void) => void;
  /** Called after each commit; what comes back is called when that is on the disk, before anybody hears of it. Default: nothing. */
  readonly onCommitted?: () => () => void;
}

/** Writes that wait are made in one transaction, which costs one flush of the disk instead of one each. */
const MAX_JOBS = 256;

/** Transactions go on while the disk is flushed; each writer hears of its own when it is on the disk. */
export function createGroupCommit({ database, defer, onCommitted = () => () => {} }: GroupCommitContext): GroupCommit {
  let waiting: Job[] = [];
  let flushing: Promise<void> | null = null;
  let flushingNext: Promise<void> | null = null;

  /** One flush at a time; those that come meanwhile share the next, for the one under way may have begun before their commit. */
  function flush(): Promise<void> {
    if (database.flush === undefined) return Promise.resolve();
    if (flushing !== null) {
      return (flushingNext ??= flushing
        .catch(() => {})
        .then(() => {
          flushingNext = null;
          return flush();
        }));
    }
    flushing = database.flush().finally(() => (flushing = null));
    return flushing;
  }

  function commitAll(): void {
    const jobs = waiting;
    waiting = [];
    for (let start = 0; start < jobs.length; start += MAX_JOBS) commit(jobs.slice(start, start + MAX_JOBS));
  }

  function commit(jobs: readonly Job[]): void {
    let outcomes: Outcome[];
    try {
      outcomes = runTogether(database, jobs);
    } catch (error) {
      // The database gave up the whole transaction: each alone, so that only those fail that must.
      if (jobs.length > 1) for (const job of jobs) commit([job]);
      else jobs[0]!.reject(error);
      return;
    }
    const onDurable = onCommitted();
    const tell = outcomes.map(({ settle }) => settle());
    const end = (): void => {
      onDurable();
      for (const { resolve } of tell) resolve();
    };
    if (database.flush === undefined) end();
    else flush().then(end, (error: unknown) => tell.forEach(({ reject }) => reject(error)));
  }

  return {
    commit: commitAll,
    flush,
    submit: (write) =>
      new Promise((resolve, reject) => {
        waiting.push({ write, resolve: resolve as (value: unknown) => void, reject });
        if (waiting.length === 1) defer(commitAll);
      }),
  };
}

/** How a write ended that the transaction has or has not in it. */
interface Outcome {
  /** After the commit: its effects; and what its caller is told when the disk has it, or has not. */
  settle(): { resolve(): void; reject(error: unknown): void };
}

const runTogether = (database: SqlDatabase, jobs: readonly Job[]): Outcome[] =>
  inTransaction(database, () => jobs.map((job) => runOne(database, job)));

function runOne(database: SqlDatabase, { write, resolve, reject }: Job): Outcome {
  const effects: (() => void)[] = [];
  database.exec('SAVEPOINT one');
  let value: unknown;
  try {
    value = write((effect) => void effects.push(effect));
  } catch (error) {
    if (isSqlError(error)) throw error;
    database.exec('ROLLBACK TO one; RELEASE one');
    return { settle: () => ({ resolve: () => reject(error), reject: () => reject(error) }) };
  }
  database.exec('RELEASE one');
  return {
    settle() {
      try {
        for (const effect of effects) effect();
        return { resolve: () => resolve(value), reject };
      } catch (error) {
        return { resolve: () => reject(error), reject };
      }
    },
  };
}
