// What tests of the memory in PostgreSQL share: a server over the wire, a schema for each test, stores that are closed after it.
import { PGlite, type Extensions } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { afterEveryTest } from '../../../../test/support/after-tests.ts';
import { START_MS } from '../../../memory/store/store-setup.contract.ts';
import { CHEAP_SCRYPT, masterKey } from './memory-setup.contract.ts';
import { PASSWORD, type TestServer } from './postgres-server.contract.ts';
import { openPostgresMemory, type PostgresMemory, type PostgresMemoryOptions } from './postgres.ts';

/** PostgreSQL in WebAssembly behind a socket: one session for all connections, and no time limits. */
export async function startPglite(extensions: Extensions = { vector }, port = 0): Promise<TestServer> {
  const db = await PGlite.create({ extensions });
  const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port, maxConnections: 50 });
  await server.start();
  return {
    connectionString: `postgres://postgres:${encodeURIComponent(PASSWORD)}@${server.getServerConn()}/postgres`,
    async stop() {
      await server.stop();
      await db.close();
    },
  };
}

const opened = new Set<PostgresMemory>();
afterEveryTest(async () => {
  for (const store of opened) await store.close().catch(() => {});
  opened.clear();
});

let numSchemas = 0;
export const newSchema = (): string => `test_${process.pid}_${numSchemas++}`;

export async function openAt(
  connectionString: string,
  schema: string,
  options: Partial<PostgresMemoryOptions> = {},
): Promise<PostgresMemory> {
  const store = await openPostgresMemory({
    connectionString,
    schema,
    masterKey,
    now: () => START_MS,
    scryptN: CHEAP_SCRYPT,
    ...options,
  });
  opened.add(store);
  return store;
}

export interface RawClient {
  connect(): Promise<void>;
  query(sql: string): Promise<unknown>;
  end(): Promise<void>;
}

/** Past the store. */
export async function connect(server: TestServer): Promise<RawClient> {
  const name = 'pg';
  const { default: pg } = (await import(name)) as { default: { Client: new (options: object) => RawClient } };
  const client = new pg.Client({ connectionString: server.connectionString });
  await client.connect();
  return client;
}

export async function query(server: TestServer, sql: string): Promise<Record<string, unknown>[]> {
  const client = await connect(server);
  try {
    return [(await client.query(sql)) as { rows: Record<string, unknown>[] }].flat().at(-1)!.rows;
  } finally {
    await client.end();
  }
}
