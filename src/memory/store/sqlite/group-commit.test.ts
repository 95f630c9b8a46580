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
    const commit = createGroupCommit({ database, defer: queueMicrotask });
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

  test('[MS28] reports a durable commit before callers are told, and not after a failure', async () => {
    const { database, log, fail } = createLog();
    const commit = createGroupCommit({ database, defer: queueMicrotask, onCommitted: () => () => log.push('durable') });
    await commit.submit((onCommit) => onCommit(() => log.push('effect')));
    expect(log.slice(-3)).toEqual(['COMMIT', 'effect', 'durable']);
    fail.set('COMMIT', 1);
    await expect(commit.submit(() => 1)).rejects.toMatchObject({ code: 'io' });
    expect(log.slice(-2)).toEqual(['COMMIT', 'ROLLBACK']);
  });

  test('[MS27] one that is refused undoes itself only', async () => {
    const { database, log } = createLog();
    const commit = createGroupCommit({ database, defer: queueMicrotask });
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
    const commit = createGroupCommit({ database, defer: queueMicrotask });
    const effects: number[] = [];
    const outcomes = await Promise.allSettled(
      [1, 2, 3].map((i) => commit.submit((onCommit) => (onCommit(() => effects.push(i)), i))),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect(outcomes[0]).toMatchObject({ reason: { code: 'io' } });
    expect(effects).toEqual([2, 3]);
    expect(log.filter((sql) => sql === 'ROLLBACK')).toHaveLength(2);
  });

  test('[MS27] a database error in a write fails that write only', async () => {
    const { database, log, fail } = createLog();
    const commit = createGroupCommit({ database, defer: queueMicrotask });
    const bad = (): never => {
      throw toSqlError(new Error('database or disk is full'));
    };
    fail.set('ROLLBACK', 9); // it has rolled back already
    const outcomes = await Promise.allSettled([commit.submit(() => 1), commit.submit(bad), commit.submit(() => 3)]);
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(outcomes[1]).toMatchObject({ reason: { code: 'disk_full' } });
    expect(log.filter((sql) => sql === 'COMMIT')).toHaveLength(2);
  });

  describe('where commits are flushed later', () => {
    /** Flushes end when the test says so. */
    function createSlowDisk() {
      const { database, log } = createLog();
      const flushes: { end(error?: Error): void }[] = [];
      const flush = (): Promise<void> =>
        new Promise((resolve, reject) => {
          log.push('flush');
          flushes.push({ end: (error) => (error === undefined ? resolve() : reject(error)) });
        });
      const commit = createGroupCommit({
        database: { ...database, flush },
        defer: queueMicrotask,
        onCommitted: () => () => log.push('durable'),
      });
      const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
      return { commit, log, flushes, turn };
    }

    test('[MS34] effects come with the commit, the answer with the flush; commits meanwhile share the next one', async () => {
      const { commit, log, flushes, turn } = createSlowDisk();
      const heard: string[] = [];
      const write = (name: string): Promise<unknown> =>
        commit.submit((onCommit) => onCommit(() => log.push(name))).then(() => heard.push(name));
      const first = write('a');
      await turn();
      const more = [write('b')];
      await turn();
      more.push(write('c'));
      await turn();
      expect(log.filter((one) => /^([a-c]|flush|durable)$/.test(one))).toEqual(['a', 'flush', 'b', 'c']);
      expect(heard).toEqual([]);
      flushes[0]!.end();
      await first;
      await turn();
      expect(heard).toEqual(['a']); // the others were committed when its flush had begun
      expect(flushes).toHaveLength(2);
      flushes[1]!.end();
      await Promise.all(more);
      expect(log.slice(-2)).toEqual(['durable', 'durable']);
      expect(flushes).toHaveLength(2);
    });

    test('[MS34] rejects writes of a failed flush, and tries the next', async () => {
      const { commit, log, flushes, turn } = createSlowDisk();
      const failing = commit.submit(() => 1);
      await turn();
      const next = commit.submit(() => 2);
      await turn();
      flushes[0]!.end(new Error('EIO'));
      await expect(failing).rejects.toThrow('EIO');
      await turn();
      flushes[1]!.end();
      expect(await next).toBe(2);
      expect(log.filter((one) => one === 'durable')).toHaveLength(1);
    });

    test('[MS34] a refusal is heard with the others, whatever the disk does', async () => {
      const { commit, flushes, turn } = createSlowDisk();
      const refused = commit.submit(() => {
        throw refusal;
      });
      await turn();
      flushes[0]!.end(new Error('EIO'));
      await expect(refused).rejects.toBe(refusal);
    });
  });
});
