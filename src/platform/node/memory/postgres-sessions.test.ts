// What needs a server with several sessions: the contract with sealed vectors, two clients at once, lost connections, time limits.
import { type AddressInfo, createConnection, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createFallbackStore } from '../../../memory/store/fallback-store.ts';
import { START_MS, testMemoryStore } from '../../../memory/store/memory-store.contract.ts';
import { expectRefusal, idOf, recordOf, vectorOf } from '../../../memory/store/store-setup.contract.ts';
import { connect, newSchema, openAt as openWith } from './postgres-setup.contract.ts';
import { findPostgres, PASSWORD, startMachineServer, type MachineServer } from './postgres-server.contract.ts';

const bin = findPostgres();
if (bin === null)
  console.log('no PostgreSQL on this machine: several sessions, restarts and time limits are not tested');

let server: MachineServer;
const openAt = (schema: string, options: Parameters<typeof openWith>[2] = {}) =>
  openWith(server.connectionString, schema, { vectors: 'sealed', ...options });

describe.skipIf(bin === null)('a PostgreSQL of this machine', () => {
  beforeAll(async () => void (server = await startMachineServer(bin!)));
  afterAll(() => server?.stop());

  testMemoryStore('on PostgreSQL with sealed vectors', async () => {
    const clock = { ms: START_MS };
    const schema = newSchema();
    const store = await openAt(schema, { now: () => clock.ms });
    const reopen = async () => {
      await store.close();
      return openAt(schema, { now: () => clock.ms });
    };
    return { store, clock, reopen };
  });

  test('[PG2] several that start at once make the tables once', async () => {
    const schema = newSchema();
    const stores = await Promise.all([1, 2, 3, 4].map(() => openAt(schema)));
    await stores[0]!.put([recordOf(1)]);
    for (const store of stores) expect(await store.count('alpha', { kinds: ['fact'] })).toBe(1);
    expect(server.run(`SELECT count(*) FROM "${schema}".migration`).trim()).toBe('3');
  });

  test('[PG12] rotated by one of two clients while both write, with tenants old and new', async () => {
    const schema = newSchema();
    const stores = [await openAt(schema), await openAt(schema)];
    const counts = [0, 0];
    const write = async (i: number): Promise<void> => {
      const n = counts[i]!++;
      await stores[i]!.put([recordOf(10_000 * i + n), recordOf(1, { tenant: `t${i} ${n}` })]);
    };
    for (let rotation = 0; rotation < 5; rotation++) {
      const before = [0, 1, 0, 1].map(write); // on their way to the server when it is told
      const rotated = stores[0]!.rotateMasterKey({ key: new Uint8Array(32).fill(20 + rotation) });
      await Promise.all([...before, rotated, ...[0, 1].map(write)]);
    }
    await expectRefusal(openAt(schema), 'invalid_option', 'another master key');
    const again = await openAt(schema, { masterKey: { key: new Uint8Array(32).fill(24) } });
    expect(await again.count('alpha', { kinds: ['fact'] })).toBe(counts[0]! + counts[1]!);
    for (const i of [0, 1]) for (let n = 0; n < counts[i]!; n++) expect(await again.count(`t${i} ${n}`, { kinds: ['fact'] })).toBe(1); // prettier-ignore
    await again.checkIntegrity();
  });

  test('[PG6] of two clients that expect the same version one succeeds, each time', async () => {
    const schema = newSchema();
    const stores = [await openAt(schema), await openAt(schema)];
    for (let version = 0; version < 25; version++) {
      const outcomes = await Promise.allSettled(
        stores.flatMap((store, i) =>
          [0, 1].map((j) =>
            store.put([recordOf(1, { ifVersion: version, body: [i, j] }), recordOf(1000 + 4 * version + 2 * i + j)]),
          ),
        ),
      );
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected')
          expect(outcome.reason).toMatchObject({ code: 'conflict', isRetryable: true });
      }
    }
    expect(await stores[0]!.count('alpha', { kinds: ['fact'] })).toBe(26);
    expect((await stores[1]!.get('alpha', [idOf(1)]))[0]).toMatchObject({ version: 25 });
    await stores[0]!.checkIntegrity();
  });

  test('[PG6] of two clients that make the same record one is first, and the other one sees it', async () => {
    const schema = newSchema();
    const stores = [await openAt(schema), await openAt(schema)];
    await stores[0]!.put([recordOf(0)]); // who makes the tenant holds up the others
    for (let i = 0; i < 25; i++) {
      const versionsOf = async (change: object): Promise<number[]> => {
        const puts = [0, 1, 0, 1].map((j) =>
          stores[j]!.put([recordOf(2 * i + 1, change), recordOf(2 * i + 2, change)]),
        );
        const outcomes = await Promise.allSettled(puts);
        return outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? outcome.value.map(({ version }) => version) : [])); // prettier-ignore
      };
      expect(await versionsOf({ ifVersion: 0 })).toEqual([1, 1]);
      await stores[0]!.delete('alpha', [idOf(2 * i + 1), idOf(2 * i + 2)]);
      expect((await versionsOf({})).sort()).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
    }
  });

  test('[PG6] no write of two clients on the same records is lost, in whatever order they name them', async () => {
    const schema = newSchema();
    const stores = [await openAt(schema), await openAt(schema)];
    const both = [
      ...[1, 2, 3].map((i) => recordOf(i, { vector: vectorOf(1, i), space: 's' })),
      ...[1, 2, 3].map((i) => recordOf(i, { tenant: 'beta' })),
    ];
    await Promise.all(Array.from({ length: 40 }, (_, i) => stores[i % 2]!.put(i % 4 < 2 ? both : both.toReversed())));
    for (const tenant of ['alpha', 'beta']) {
      const found = await stores[0]!.get(tenant, [1, 2, 3].map(idOf));
      expect(found.map((record) => record?.version)).toEqual([40, 40, 40]);
    }
    await stores[0]!.checkIntegrity();
  });

  test('[PG7] a tenant that one client erases while another writes is before or after, never half', async () => {
    const schema = newSchema();
    const [one, two] = [await openAt(schema), await openAt(schema)];
    for (let round = 0; round < 10; round++) {
      await one.put([recordOf(1)]);
      const writes = Array.from({ length: 6 }, (_, i) => two.put([recordOf(10 + 2 * i), recordOf(11 + 2 * i)]));
      const [erased, ...outcomes] = await Promise.allSettled([one.eraseTenant('alpha'), ...writes]);
      expect(erased.status).toBe('fulfilled');
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected')
          expect(outcome.reason).toMatchObject({ code: 'conflict', isRetryable: true });
      }
      expect(await two.get('alpha', [idOf(1)])).toEqual([null]);
      const left = await two.get(
        'alpha',
        Array.from({ length: 12 }, (_, i) => idOf(10 + i)),
      );
      for (let i = 0; i < 12; i += 2) expect(left[i] === null).toBe(left[i + 1] === null);
      await one.checkIntegrity();
    }
  });

  test('[PG8] an ended connection is a retryable error, and the next call works', async () => {
    const schema = newSchema();
    const store = await openAt(schema, { maxConnections: 1 });
    await store.put([recordOf(1)]);
    const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ruvllm'`;
    // While it waits for a lock that the administrator holds.
    await holdLock(`LOCK TABLE "${schema}".record IN ACCESS EXCLUSIVE MODE`, async () => {
      const put = store.put([recordOf(2)]);
      const refused = expectRefusal(put, 'io');
      await until(() => server.run(`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'ruvllm' AND wait_event_type = 'Lock'`).trim() === '1'); // prettier-ignore
      server.run(end);
      await refused;
      await expect(put).rejects.toMatchObject({ isRetryable: true, data: { sqlState: '57P01' } });
    });
    expect(await store.get('alpha', [idOf(2)])).toEqual([null]);
    await store.put([recordOf(2)]);
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(2);
  });

  test('[PG8] a crash of the server causes retryable errors and loses nothing acknowledged', async () => {
    const schema = newSchema();
    const store = await openAt(schema);
    await store.put([recordOf(1)]);
    await server.kill();
    const calls = [
      () => store.get('alpha', [idOf(1)]),
      () => store.put([recordOf(2)]),
      () => store.stats(null),
      () => openAt(schema),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'io', isRetryable: true });
    await server.start();
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(1);
    await store.put([recordOf(2)]);
    await store.checkIntegrity();
  });

  test('[PG8] killed in the middle of transactions: acknowledged writes are there once, others whole or not at all', async () => {
    const schema = newSchema();
    const store = await openAt(schema, { maxConnections: 4 });
    const acknowledged = new Set<number>();
    const failures: unknown[] = [];
    let next = 1;
    let isOver = false;
    const write = async (): Promise<void> => {
      while (!isOver) {
        const i = next;
        next += 2;
        try {
          await store.put([recordOf(i, { ifVersion: 0 }), recordOf(i + 1, { ifVersion: 0 })]);
          acknowledged.add(i);
        } catch (error) {
          failures.push(error);
          isOver = true;
        }
      }
    };
    for (let round = 0; round < 3; round++) {
      isOver = false;
      const before = acknowledged.size;
      const writers = [write(), write(), write(), write()];
      await until(() => acknowledged.size >= before + 10);
      await server.killAll();
      await Promise.all(writers);
      for (const call of [() => store.get('alpha', [idOf(1)]), () => store.put([recordOf(next)])]) {
        await expect(call()).rejects.toMatchObject({ code: 'io', isRetryable: true, data: { isConnectionLost: true } });
      }
      await server.start();
      const found = await store.get('alpha', Array.from({ length: next }, (_, i) => idOf(i + 1))); // prettier-ignore
      const versions = found.map((record) => record?.version ?? 0);
      for (const i of acknowledged) expect(versions.slice(i - 1, i + 1)).toEqual([1, 1]);
      for (let i = 0; i + 1 < versions.length; i += 2) expect(versions[i]).toBe(versions[i + 1]);
    }
    for (const error of failures) expect(error).toMatchObject({ code: 'io', isRetryable: true });
    await store.checkIntegrity();
  });

  test('[PG8] an answer lost after the commit: the outcome is unknown, and a repeated write is not doubled', async () => {
    const schema = newSchema();
    const proxy = await startProxy(server);
    const store = await openAt(schema, { connectionString: proxy.connectionString });
    await store.put([recordOf(1)]);
    proxy.loseNextCommit();
    const put = () => store.put([recordOf(2, { ifVersion: 0 })]);
    await expect(put()).rejects.toMatchObject({ code: 'io', isRetryable: true, data: { isOutcomeUnknown: true } });
    await expect(put()).rejects.toMatchObject({ code: 'conflict' }); // it had been written
    expect((await store.get('alpha', [idOf(2)]))[0]).toMatchObject({ version: 1 });
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(2);
    await store.close();
    proxy.close();
  });

  test('[PG8] the memory of a server reports the loss, and recovers by itself', async () => {
    const schema = newSchema();
    const store = await createFallbackStore({
      openPrimary: () => openAt(schema),
      createFallback: () => expect.unreachable('it was open'),
      report: () => {},
      now: () => performance.now(),
      schedule(task, delayMs) {
        const timer = setTimeout(task, delayMs);
        return () => clearTimeout(timer);
      },
    });
    await store.put([recordOf(1)]);
    await server.killAll();
    await expectRefusal(store.put([recordOf(2)]), 'io', 'cannot be written');
    expect(store.degraded()).toContain('cannot be written');
    await server.start();
    await expect.poll(() => store.degraded()).toBeNull(); // without a call
    await store.put([recordOf(2)]);
    expect(await store.count('alpha', { kinds: ['fact'] })).toBe(2);
    await store.close();
  });

  test('[PG9] the server ends a statement that takes too long', async () => {
    const schema = newSchema();
    const unlimited = await openAt(schema);
    await unlimited.put([recordOf(1)]);
    // Has only to wait for the lock: on a busy machine a statement without one may take longer than this, too.
    const store = await openAt(schema, { statementTimeoutMs: 1000 });
    await holdLock(`LOCK TABLE "${schema}".record IN ACCESS EXCLUSIVE MODE`, async () => {
      const refused = { code: 'deadline_exceeded', isRetryable: true, data: { sqlState: '57014' } };
      await expect(store.get('alpha', [idOf(1)])).rejects.toMatchObject(refused);
      await expect(store.put([recordOf(2)])).rejects.toMatchObject(refused);
    });
    expect(await unlimited.count('alpha', { kinds: ['fact'] })).toBe(1);
  });

  test('[PG5] without pgvector: refused with its name, and nothing made', async () => {
    const isThere = server.run(`SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'`).trim() !== '0';
    if (isThere) return console.log('this server has pgvector: its absence is tested without a server');
    const schema = newSchema();
    await expectRefusal(openAt(schema, { vectors: 'pgvector' }), 'unsupported', 'extension "vector" (pgvector)');
    expect(server.run(`SELECT count(*) FROM pg_namespace WHERE nspname = '${schema}'`).trim()).toBe('0');
  });

  test('[PG10] a wrong password, a missing database and a server without TLS are refused without the password', async () => {
    const wrong = 'wr0ng-S3cret';
    const strings = [
      [server.connectionString.replace(/:[^:@]+@/, `:${wrong}@`), 'invalid_option'],
      [server.connectionString.replace(/postgres$/, 'nowhere'), 'not_found'],
      [`${server.connectionString}?sslmode=verify-full`, 'invalid_option'],
    ] as const;
    for (const [connectionString, code] of strings) {
      const error: unknown = await openAt(newSchema(), { connectionString }).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ name: 'RuvLLMError', code, isRetryable: false });
      expectSecret(error, [wrong, server.connectionString, connectionString]);
    }
  });
});

function expectSecret(error: unknown, secrets: readonly string[]): void {
  const shown = inspect(error, { depth: Infinity, showHidden: true });
  for (const secret of [...secrets, PASSWORD, encodeURIComponent(PASSWORD)]) expect(shown).not.toContain(secret);
}

/** Runs while another session holds a lock. */
async function holdLock(sql: string, run: () => Promise<void>): Promise<void> {
  const client = await connect(server);
  try {
    await client.query(`BEGIN; ${sql}`);
    await run();
  } finally {
    await client.end();
  }
}

/** In front of a server: loses the answer to a commit, with its connection. */
async function startProxy(target: MachineServer) {
  const port = Number(new URL(target.connectionString).port);
  let isLosing = false;
  const proxy = createServer((client) => {
    const upstream = createConnection(port, '127.0.0.1');
    let isLost = false;
    client.on('data', (bytes) => {
      isLost ||= isLosing && bytes.includes('COMMIT');
      if (isLost) isLosing = false;
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => void (isLost ? client.destroy() : client.write(bytes)));
    for (const [one, other] of [[client, upstream], [upstream, client]] as const) one.on('close', () => other.destroy()).on('error', () => {}); // prettier-ignore
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const own = (proxy.address() as AddressInfo).port;
  return {
    connectionString: target.connectionString.replace(`:${port}/`, `:${own}/`),
    loseNextCommit: () => void (isLosing = true),
    close: () => proxy.close(),
  };
}

async function until(holds: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 2400 && !holds(); attempt++) await sleep(25);
}
