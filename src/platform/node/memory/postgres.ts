import { checkChoice, checkInteger, checkKeys } from '../../../core/options.ts';
import { withoutUndefined } from '../../../memory/common/store-access.ts';
import {
  createPostgresStore,
  type PostgresStore,
  type PostgresStoreOptions,
} from '../../../memory/store/postgres/postgres-store.ts';
import { VECTOR_MODES } from '../../../memory/store/postgres/schema.ts';
import type { MasterSource } from '../sealing/master-source.ts';
import { parseConnectionString } from './connection-string.ts';
import { createPostgresPool } from './postgres-driver.ts';
import { createPostgresHeader } from './postgres-keys.ts';

export interface PostgresMemoryOptions extends Pick<
  PostgresStoreOptions,
  'fields' | 'schema' | 'vectors' | 'exactRows'
> {
  /** `postgres://user:password@host:5432/database?sslmode=verify-full&sslrootcert=…`; never shown in errors. `vectors=sealed` there is the option `vectors`. */
  readonly connectionString: string;
  readonly masterKey: MasterSource;
  readonly now?: () => number;
  /** Default 8. */
  readonly maxConnections?: number;
  /** Time limit of a statement. Default 30,000. */
  readonly statementTimeoutMs?: number;
  /** Default 10 000. */
  readonly connectTimeoutMs?: number;
  /** Cost of new passphrases; for tests. */
  readonly scryptN?: number;
}

const KEYS = ['connectionString', 'masterKey', 'now', 'maxConnections', 'statementTimeoutMs', 'connectTimeoutMs', 'scryptN', 'fields', 'schema', 'vectors', 'exactRows']; // prettier-ignore
const MAX_TIMEOUT_MS = 3_600_000;

export interface PostgresMemory extends Omit<PostgresStore, 'replaceHeader'> {
  /** The old key no longer opens the memory; processes that have it open keep working. */
  rotateMasterKey(to: MasterSource): Promise<void>;
}

/**
 * Opens the memory in PostgreSQL and creates its tables if needed. Refuses, without changes: another master key
 * (`invalid_option`), a newer version, or a server without pgvector unless `vectors` is `sealed` (both `unsupported`).
 */
export async function openPostgresMemory(options: PostgresMemoryOptions): Promise<PostgresMemory> {
  checkKeys(options, 'options', KEYS);
  let { masterKey } = options;
  const target = parseConnectionString(options.connectionString, process.env);
  const { now = Date.now, fields, schema, vectors = target.vectors ?? 'pgvector', exactRows } = options;
  const { maxConnections = 8, statementTimeoutMs = 30_000, connectTimeoutMs = 10_000 } = options;
  const pool = await createPostgresPool({
    target,
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
      vectors: checkChoice(vectors, 'vectors', VECTOR_MODES),
      ...withoutUndefined({ fields, schema, exactRows }),
    });
    return {
      ...store,
      async rotateMasterKey(to) {
        await replaceHeader((old) => header.rotate(old, to));
        masterKey = to;
      },
    };
  } catch (error) {
    await pool.close().catch(() => {}); // the first error counts
    throw error;
  }
}
