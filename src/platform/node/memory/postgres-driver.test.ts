import { expect, test } from 'vitest';
import { parseConnectionString } from './connection-string.ts';
import { createPostgresPool } from './postgres-driver.ts';

const limits = { maxConnections: 1, statementTimeoutMs: 1000, connectTimeoutMs: 1000 };
const target = parseConnectionString('postgres://me:s3cret@host/base');

/** A `pg` whose connections answer by a script; what was sent, and how each connection was given back. */
function createFake(answer: (sql: string) => unknown) {
  const sent: string[] = [];
  const released: boolean[] = [];
  class Pool {
    on(): void {}
    async connect() {
      const query = async (sql: string) => {
        sent.push(sql);
        const value = answer(sql);
        if (value instanceof Error) throw value;
        return value ?? { rows: [], rowCount: 0 };
      };
      return { query, on: () => {}, release: (destroy: boolean) => void released.push(destroy) };
    }
    async end(): Promise<void> {}
  }
  const load = async () => ({ default: { Pool, types: { getTypeParser: () => String } } });
  return { load, sent, released };
}
const lost = () => Object.assign(new Error('gone with s3cret'), { code: 'ECONNRESET' });

test('[PG11] without the package "pg" the error says what to install', async () => {
  const load = () => Promise.reject(Object.assign(new Error('none'), { code: 'ERR_MODULE_NOT_FOUND' }));
  await expect(createPostgresPool({ target, ...limits, load })).rejects.toMatchObject({ code: 'unsupported', message: expect.stringContaining('npm install pg@8') }); // prettier-ignore
});

test('[PG8] a connection that is lost while committing leaves the outcome unknown, and says so', async () => {
  const fake = createFake((sql) => (sql === 'COMMIT' ? lost() : undefined));
  const pool = await createPostgresPool({ target, ...limits, load: fake.load });
  await expect(pool.transaction(async (client) => client.query('A'))).rejects.toMatchObject({
    code: 'io',
    isRetryable: true,
    data: { isOutcomeUnknown: true },
    message: "the memory's PostgreSQL: gone with ***; it is unknown whether the write succeeded",
  });
  expect(fake.sent).toEqual(['BEGIN', 'A', 'COMMIT']);
  expect(fake.released).toEqual([true]);
});

test('[PG8] a statement that fails undoes its transaction and leaves the connection; a lost one is thrown away', async () => {
  const wrong = () => Object.assign(new Error('wrong'), { code: '42601' });
  const failing = createFake((sql) => (sql === 'A' ? wrong() : undefined));
  const pool = await createPostgresPool({ target, ...limits, load: failing.load });
  await expect(pool.transaction((client) => client.query('A'))).rejects.toMatchObject({ message: "the memory's PostgreSQL: wrong" }); // prettier-ignore
  expect([failing.sent, failing.released]).toEqual([['BEGIN', 'A', 'ROLLBACK'], [false]]);
  // An answer that comes after our own time limit would be taken for that of the next statement.
  for (const error of [lost(), new Error('Query read timeout')]) {
    const losing = createFake(() => error);
    const other = await createPostgresPool({ target, ...limits, load: losing.load });
    await expect(other.query('A')).rejects.toMatchObject({ isRetryable: true });
    expect(losing.released).toEqual([true]);
  }
});

test('[PG8] a connection to a server that became a standby is not used again', async () => {
  const standby = Object.assign(new Error('cannot execute INSERT in a read-only transaction'), { code: '25006' });
  const fake = createFake((sql) => (sql === 'A' ? standby : undefined));
  const pool = await createPostgresPool({ target, ...limits, load: fake.load });
  await expect(pool.transaction(async (client) => client.query('A'))).rejects.toMatchObject({ code: 'io', isRetryable: true }); // prettier-ignore
  expect([fake.sent, fake.released]).toEqual([['BEGIN', 'A', 'ROLLBACK'], [true]]);
});
