import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SqlDatabase } from '../../../memory/store/sqlite/sql-database.ts';
import { checkpointWhenIdle } from './checkpoint-when-idle.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setUp(fails = false) {
  const said: string[] = [];
  const exec = (sql: string): void => {
    said.push(sql);
    if (fails && sql.startsWith('PRAGMA')) throw new Error('the disk is ill');
  };
  const database = { exec, close: () => void said.push('close') } as unknown as SqlDatabase;
  return { said, database: checkpointWhenIdle(database, 500) };
}

test('[MS32] the log goes into the database when nothing was written for a while, once', () => {
  const { said, database } = setUp();
  database.exec('BEGIN IMMEDIATE');
  vi.advanceTimersByTime(10_000);
  expect(said).toEqual(['BEGIN IMMEDIATE']);
  database.exec('COMMIT');
  vi.advanceTimersByTime(499);
  database.exec('COMMIT');
  vi.advanceTimersByTime(499);
  expect(said).toEqual(['BEGIN IMMEDIATE', 'COMMIT', 'COMMIT']);
  vi.advanceTimersByTime(1);
  expect(said.at(-1)).toBe('PRAGMA wal_checkpoint(PASSIVE)');
  vi.advanceTimersByTime(10_000);
  expect(said).toHaveLength(4);
});

test('[MS32] a disk that fails then costs nothing, and a closed database is left alone', () => {
  const { said, database } = setUp(true);
  database.exec('COMMIT');
  vi.advanceTimersByTime(500);
  database.exec('COMMIT');
  database.close();
  vi.advanceTimersByTime(10_000);
  expect(said).toEqual(['COMMIT', 'PRAGMA wal_checkpoint(PASSIVE)', 'COMMIT', 'close']);
});
