import { describe, expect, test } from 'vitest';
import { RuvLLMError } from '../../../core/errors.ts';
import { createGroupCommit } from './group-commit.ts';
import { toSqlError, type SqlDatabase } from './sql-database.ts';

/** Notes what is executed; `fail` makes one kind of statement throw, so many times. */
function createLog(): { database: SqlDatabase; log: string[]; fail: Map<string, number> } {
  const log: string[] = [];
  const fail = new Map<string, number>();
  const exec = (sql: string): void => {
    log.push(sql);
    const left = fail.get(sql) ?? 0;
    fail.set(sql, left - 1);
    if (left > 0) throw toSqlError(new Error('disk I/O error'));
  };
  const statement = { run: () => ({ numChanges: 0, lastRow: 0 }), all: () => [] };
  return { log, fail, database: { exec, prepare: () => statement, close: () => {} } };
}

const refusal = new RuvLLMError('conflict', 'no');

describe('group commit', () => {
  test('[MS27] writes of one turn share a transaction, in their order, and resolve after the commit', async () => {
    const { database, log } = createLog();
    const commit = createGroupCommit(database, queueMicrotask);
    const effects: string[] = [];
    const writes = ['a', 'b', 'c'].map((name) =>
      commit.submit((onCommit) => {
        log.push(name);
        onCommit(() => effects.push(`${name} after ${log.at(-1)}`));
        return name;
      }),
    );
    expect(log).toEqual([]);
    expect(await Promise.all(writes)).toEqual(['a', 'b', 'c']);
    const one = (name: string): string[] => ['SAVEPOINT one', name, 'RELEASE one'];
    expect(log).toEqual(['BEGIN IMMEDIATE', ...one('a'), ...one('b'), ...one('c'), 'COMMIT']);
    expect(effects).toEqual(['a after COMMIT', 'b after COMMIT', 'c after COMMIT']);
    await commit.submit(() => 1);
    expect(log.filter((sql) => sql === 'COMMIT')).toHaveLength(2);
  });

  test('[MS28] what is durable is told before anybody hears of it, and not after a failure', async () => {
    const { database, log, fail } = createLog();
    const commit = createGroupCommit(database, queueMicrotask, () => log.push('durable'));
    await commit.submit((onCommit) => onCommit(() => log.push('effect')));
    expect(log.slice(-3)).toEqual(['COMMIT', 'durable', 'effect']);
    fail.set('COMMIT', 1);
    await expect(commit.submit(() => 1)).rejects.toMatchObject({ code: 'io' });
    expect(log.slice(-2)).toEqual(['COMMIT', 'ROLLBACK']);
  });

  test('[MS27] one that is refused undoes itself only', async () => {
    const { database, log } = createLog();
    const commit = createGroupCommit(database, queueMicrotask);
    const effects: string[] = [];
    const outcomes = await Promise.allSettled([
      commit.submit(() => 1),
      commit.submit((onCommit) => {
        onCommit(() => effects.push('never'));
        throw refusal;
      }),
      commit.submit(() => 3),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(effects).toEqual([]);
    expect(log.filter((sql) => sql.startsWith('ROLLBACK'))).toEqual(['ROLLBACK TO one; RELEASE one']);
    expect(log.at(-1)).toBe('COMMIT');
  });

  test('[MS27] when the commit fails, each is tried alone, and only those that fail again are told so', async () => {
    const { database, log, fail } = createLog();
    fail.set('COMMIT', 2); // the common one, and that of the first alone
    const commit = createGroupCommit(database, queueMicrotask);
    const effects: number[] = [];
    const outcomes = await Promise.allSettled(
      [1, 2, 3].map((i) => commit.submit((onCommit) => (onCommit(() => effects.push(i)), i))),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect(outcomes[0]).toMatchObject({ reason: { code: 'io' } });
    expect(effects).toEqual([2, 3]);
    expect(log.filter((sql) => sql === 'ROLLBACK')).toHaveLength(2);
  });

  test('[MS27] a database that gives up in the middle of a write fails that write and no other', async () => {
    const { database, log, fail } = createLog();
    const commit = createGroupCommit(database, queueMicrotask);
    const bad = (): never => {
      throw toSqlError(new Error('database or disk is full'));
    };
    fail.set('ROLLBACK', 9); // it has rolled back already
    const outcomes = await Promise.allSettled([commit.submit(() => 1), commit.submit(bad), commit.submit(() => 3)]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[1]).toMatchObject({ reason: { code: 'disk_full' } });
    expect(log.filter((sql) => sql === 'COMMIT')).toHaveLength(2);
  });
});
