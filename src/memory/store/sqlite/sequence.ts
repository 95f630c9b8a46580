import type { SqlDatabase } from './sql-database.ts';
import { numberOf } from '../row-values.ts';

/** Numbers per opening: more than can be used. */
const EPOCH_SIZE = 2 ** 32;

export interface Sequence {
  next(): number;
  /** The last one issued. */
  last(): number;
  /** All writes up to `seq` are on disk. */
  settle(seq: number): void;
  /**
   * The last settled one. Not the last issued: rows of a failed transaction may be in the log and appear after the next opening,
   * unless a later transaction has replaced them.
   */
  settled(): number;
}

/**
 * Numbers that grow over all openings. Each opening takes its own range, so that commits need not write a counter and no number
 * is issued twice, even after the rows with the highest numbers were deleted.
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
