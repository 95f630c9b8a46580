import type { SqlDatabase } from './sql-database.ts';
import { numberOf } from '../row-values.ts';

/** Numbers of one opening: more than can be written in any. */
const EPOCH_SIZE = 2 ** 32;

export interface Sequence {
  next(): number;
  /** The last that was given. */
  last(): number;
  /** All up to this one is on the disk. */
  settle(seq: number): void;
  /**
   * The last that is settled. Not the last that was given: of a transaction that failed the rows may lie in the log all the same, and
   * be there after the next opening, unless a later transaction has taken their place.
   */
  settled(): number;
}

/**
 * Numbers that only grow, over all openings: each takes a range of its own when it begins, so that a number need not be written
 * with every commit, and none is ever given twice even when the rows that had the highest are gone.
 */
export function createSequence(database: SqlDatabase): Sequence {
  database.exec(`INSERT INTO setting (name, value) VALUES ('epoch', 1)
    ON CONFLICT (name) DO UPDATE SET value = value + 1`);
  const epoch = numberOf(database.prepare(`SELECT value FROM setting WHERE name = 'epoch'`).all()[0]?.['value']);
  let last = epoch * EPOCH_SIZE;
  let settled = last;
  return {
    next: () => ++last,
    last: () => last,
    settle: (seq) => void (settled = Math.max(settled, seq)),
    settled: () => settled,
  };
}
