import { inTransaction, isSqlError, type SqlDatabase } from './sql-database.ts';

/** Registers an effect to run right after the commit. */
export type OnCommit = (effect: () => void) => void;

/** May run twice, so its only effects are in the database and through `onCommit`. */
export type Write<T> = (onCommit: OnCommit) => T;

interface Job {
  readonly write: Write<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupCommit {
  /** Resolves when the write is durable. A refused write does not undo others. */
  submit<T>(write: Write<T>): Promise<T>;
  /** Commits waiting writes now. */
  commit(): void;
  /** Resolves when everything committed is on disk. */
  flush(): Promise<void>;
}

interface GroupCommitContext {
  readonly database: SqlDatabase;
  /** Writes of one turn share a transaction. */
  readonly defer: (run: () => void) => void;
  /** Called last in each transaction. */
  readonly onTransaction?: () => void;
  /** Called after each commit and its effects; the returned function is called when it is on disk, before callers are told. */
  readonly onCommitted?: () => () => void;
}

/** Writes in one transaction, which costs one flush. */
const MAX_JOBS = 256;

/** Transactions continue during a flush; each write resolves when it is on disk. */
export function createGroupCommit(context: GroupCommitContext): GroupCommit {
  const { database, defer, onTransaction = () => {}, onCommitted = () => () => {} } = context;
  let waiting: Job[] = [];
  let flushing: Promise<void> | null = null;
  let flushingNext: Promise<void> | null = null;

  /** One flush at a time. Later commits share the next one, because the current one may have started before them. */
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
      outcomes = runTogether(database, jobs, onTransaction);
    } catch (error) {
      // The whole transaction failed: tries each write alone.
      if (jobs.length > 1) for (const job of jobs) commit([job]);
      else jobs[0]!.reject(error);
      return;
    }
    const tell = outcomes.map(({ settle }) => settle());
    const onDurable = onCommitted();
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

interface Outcome {
  /** Runs the effects after the commit; returns how to tell the caller. */
  settle(): { resolve(): void; reject(error: unknown): void };
}

const runTogether = (database: SqlDatabase, jobs: readonly Job[], onTransaction: () => void): Outcome[] =>
  inTransaction(database, () => {
    const outcomes = jobs.map((job) => runOne(database, job));
    onTransaction();
    return outcomes;
  });

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
