import { numberOf } from '../row-values.ts';
import { inTransaction, type SqlDatabase } from './sql-database.ts';

/** The contents of the database when the last acknowledged write was on disk. */
export interface StoredHead {
  /** Of the database: another one has another number. */
  readonly generation: number;
  /** Transactions so far. */
  readonly numCommits: number;
  /** Openings so far. */
  readonly epoch: number;
  readonly numRecords: number;
  /** A loss that was noticed and not yet accepted; null: none. */
  readonly problem: string | null;
}

/** Where the head is kept: outside the database, so that it does not vanish with it. */
export interface StoreHead {
  /** Replaces the whole file, on disk when it returns. */
  replace(head: StoredHead): void;
  /** After each durable commit and before its callers are told, so that it never leads the database. Must be cheap; never throws. */
  write(head: StoredHead): void;
  flush(): void;
}

export interface HeadOptions {
  readonly file: StoreHead;
  /** As read before the database was opened. */
  readonly expected: StoredHead | 'absent' | 'damaged';
  /** A random number below 2^48, for a new database. */
  readonly newGeneration: () => number;
  /** Contents lost before the database was opened, in words; null: none. */
  readonly problem: string | null;
}

/** Counts of the database, in step with its transactions. */
export interface Ledger {
  /** In each transaction, last. */
  count(): void;
  /** After the transaction; `delta`: of the number of records. */
  note(delta: number): void;
  /** After each transaction; returns what to call when it is on disk. */
  committed(): () => void;
  /** After changes outside of counted transactions. */
  recount(): void;
  /** Keeps a loss in the head until it is accepted. */
  addProblem(problem: string): void;
  problem(): string | null;
  snapshot(): StoredHead;
  close(): void;
}

const readSetting = (database: SqlDatabase, name: string): number | null => {
  const row = database.prepare('SELECT value FROM setting WHERE name = ?').all(name)[0];
  return row === undefined ? null : numberOf(row['value']);
};

function writeSetting(database: SqlDatabase, name: string, value: number): void {
  database
    .prepare('INSERT INTO setting (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value')
    .run(name, value);
}

const countRecords = (database: SqlDatabase): number =>
  numberOf(database.prepare('SELECT count(*) AS n FROM record').all()[0]?.['n']);

interface LedgerOptions {
  readonly database: SqlDatabase;
  /** Null: not kept. */
  readonly head: StoreHead | null;
  /** As read before the database was opened. */
  readonly expected: StoredHead | 'absent' | 'damaged';
  /** A random number below 2^48, for a new database. */
  readonly newGeneration: () => number;
}

/** Compares the database with its head, and keeps both in step from now on. After `createSequence`, which counts the opening. */
export function openLedger({ database, head, expected, newGeneration }: LedgerOptions): Ledger {
  const known = readSetting(database, 'generation');
  const generation = known ?? newGeneration();
  const epoch = readSetting(database, 'epoch') ?? 0;
  let numCommits = readSetting(database, 'commits') ?? 0;
  let numRecords = countRecords(database);
  let problem = compare();

  /** Null: the database has everything that was acknowledged. */
  function compare(): string | null {
    if (head === null) return null;
    // Set once a head exists: a crash right after the creation of the database is no loss.
    const wasHeaded = readSetting(database, 'headed') === 1;
    if (expected === 'absent' || expected === 'damaged') {
      if (!wasHeaded) return null;
      return `the file memory.head was ${expected === 'absent' ? 'missing' : 'damaged'}: it is unknown whether all records are there`;
    }
    const lost = (what: string): string =>
      `${what}; it had ${expected.numRecords} records after ${expected.numCommits} writes, now ${numRecords} after ${numCommits}`;
    const reasons = [expected.problem];
    // Power was lost while the database was created: nothing was acknowledged yet.
    const hasWrites = expected.numCommits > 0 || expected.numRecords > 0;
    if (generation !== expected.generation && hasWrites) reasons.push(lost('the database is a different one'));
    else if (generation !== expected.generation) return expected.problem;
    else if (numCommits < expected.numCommits || epoch <= expected.epoch) {
      reasons.push(lost('the database is older than its last write'));
    } else if (
      numCommits === expected.numCommits &&
      epoch === expected.epoch + 1 &&
      numRecords !== expected.numRecords
    ) {
      reasons.push(lost('records are missing or were added by another program'));
    }
    return [...new Set(reasons.filter((reason) => reason !== null))].join('; ') || null;
  }

  const snapshot = (): StoredHead => ({ generation, numCommits, epoch, numRecords, problem });
  /** Of what is on disk: a head that led the database would be a false alarm. */
  let durable = snapshot();

  if (head !== null) {
    if (known === null) inTransaction(database, () => writeSetting(database, 'generation', generation));
    head.replace(snapshot());
    if (readSetting(database, 'headed') !== 1) inTransaction(database, () => writeSetting(database, 'headed', 1));
  }

  return {
    count() {
      if (head !== null) writeSetting(database, 'commits', numCommits + 1);
    },
    note: (delta) => void (numRecords += delta),
    committed() {
      numCommits++;
      const current = snapshot();
      return () => {
        durable = { ...current, problem };
        head?.write(durable);
      };
    },
    recount: () => void (numRecords = countRecords(database)),
    addProblem(text) {
      if (problem?.includes(text) === true) return;
      problem = problem === null ? text : `${problem}; ${text}`;
      durable = { ...durable, problem };
      head?.replace(durable);
    },
    problem: () => problem,
    snapshot,
    close() {
      head?.write(durable);
      head?.flush();
    },
  };
}
