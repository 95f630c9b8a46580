// What tests of the memory in PostgreSQL share: a server over the wire, a schema for each test, stores that are closed after it.
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PGlite, type Extensions } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { afterEveryTest } from '../../../../test/support/after-tests.ts';
import { START_MS } from '../../../memory/store/store-setup.contract.ts';
import { CHEAP_SCRYPT, masterKey } from './memory-setup.contract.ts';
import { PASSWORD, type TestServer } from './postgres-server.contract.ts';
import { openPostgresMemory, type PostgresMemory, type PostgresMemoryOptions } from './postgres.ts';

const repository = fileURLToPath(new URL('../../../..', import.meta.url));

/** An empty database: PostgreSQL in WebAssembly takes eight seconds to make one, and one to read one, so the first is kept. */
async function readEmptyDatabase(): Promise<Blob> {
  const { version } = JSON.parse(
    readFileSync(join(repository, 'node_modules/@electric-sql/pglite/package.json'), 'utf8'),
  ) as { version: string };
  const folder = join(repository, '.cache/pglite');
  const path = join(folder, `${version}.tar.gz`);
  if (!existsSync(path)) {
    const db = await PGlite.create();
    const made = new Uint8Array(await (await db.dumpDataDir('gzip')).arrayBuffer());
    await db.close();
    mkdirSync(folder, { recursive: true });
    writeFileSync(`${path}.${process.pid}`, made);
    renameSync(`${path}.${process.pid}`, path);
  }
  return new Blob([readFileSync(path)], { type: 'application/x-gzip' });
}

/** PostgreSQL in WebAssembly behind a socket: one session for all connections, and no time limits. */
export async function startPglite(extensions: Extensions = { vector }, port = 0): Promise<TestServer> {
  const db = await PGlite.create({ extensions, loadDataDir: await readEmptyDatabase() });
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
