import { checkChoice, checkInteger, checkKeys } from '../../../memory/store/checks.ts';
import { createPostgresStore, type PostgresStoreOptions } from '../../../memory/store/postgres/postgres-store.ts';
import type { PostgresStore } from '../../../memory/store/postgres/postgres-store.ts';
import type { MasterSource } from '../sealing/master-source.ts';
import { parseConnectionString } from './connection-string.ts';
import { createPostgresPool } from './postgres-driver.ts';
import { createPostgresHeader } from './postgres-keys.ts';

export interface PostgresMemoryOptions extends Pick<
  PostgresStoreOptions,
  'fields' | 'schema' | 'vectors' | 'exactRows'
> {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full&sslrootcert=…`; never shown in a message. */
  readonly connectionString: string;
  readonly masterKey: MasterSource;
  readonly now?: () => number;
  /** Default 8. */
  readonly maxConnections?: number;
  /** After which the server gives up a statement. Default 30 000. */
  readonly statementTimeoutMs?: number;
  /** Default 10 000. */
  readonly connectTimeoutMs?: number;
  /** Cost of new passphrases; for tests. */
  readonly scryptN?: number;
}

const KEYS = ['connectionString', 'masterKey', 'now', 'maxConnections', 'statementTimeoutMs', 'connectTimeoutMs', 'scryptN', 'fields', 'schema', 'vectors', 'exactRows']; // prettier-ignore
const MAX_TIMEOUT_MS = 3_600_000;

/** A memory in PostgreSQL. */
export interface PostgresMemory extends Omit<PostgresStore, 'replaceHeader'> {
  /** The new key opens the memory from now on, the old one no more; whoever has it open goes on. */
  rotateMasterKey(to: MasterSource): Promise<void>;
}

/**
 * Opens the memory in a PostgreSQL, making its tables when there are none. Refused, with nothing changed: another master key
 * (`invalid_option`), a newer version (`unsupported`), a server without pgvector unless `vectors` is `sealed` (`unsupported`).
 */
export async function openPostgresMemory(options: PostgresMemoryOptions): Promise<PostgresMemory> {
  checkKeys(options, 'options', KEYS);
  let { masterKey } = options;
  const { now = Date.now, fields, schema, vectors, exactRows } = options;
  const { maxConnections = 8, statementTimeoutMs = 30_000, connectTimeoutMs = 10_000 } = options;
  const pool = await createPostgresPool({
    target: parseConnectionString(options.connectionString, process.env),
    maxConnections: checkInteger(maxConnections, 'maxConnections', 1, 1000),
    statementTimeoutMs: checkInteger(statementTimeoutMs, 'statementTimeoutMs', 1, MAX_TIMEOUT_MS),
    connectTimeoutMs: checkInteger(connectTimeoutMs, 'connectTimeoutMs', 1, MAX_TIMEOUT_MS),
  });
  const header = createPostgresHeader(() => masterKey, options.scryptN);
  try {
    const { replaceHeader, ...store } = await createPostgresStore({
      pool,
      header,
      now,
      ...(fields === undefined ? {} : { fields }),
      ...(schema === undefined ? {} : { schema }),
      ...(vectors === undefined ? {} : { vectors: checkChoice(vectors, 'vectors', ['pgvector', 'sealed']) }),
      ...(exactRows === undefined ? {} : { exactRows }),
    });
    return {
      ...store,
      async rotateMasterKey(to) {
        await replaceHeader((old) => header.rotate(old, to));
        masterKey = to;
      },
    };
  } catch (error) {
    await pool.close().catch(() => {}); // what went wrong first is what counts
    throw error;
  }
}
