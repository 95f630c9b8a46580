import { RuvLLMError } from '../../../core/errors.ts';
import { toPostgresError } from '../../../memory/store/postgres/postgres-errors.ts';
import type { SqlClient, SqlPool, SqlResult, SqlRow, SqlValue } from '../../../memory/store/postgres/sql-client.ts';
import type { ConnectionTarget } from './connection-string.ts';

interface PgResult {
  readonly rows: SqlRow[];
  readonly rowCount: number | null;
}

interface PgClient {
  query(sql: string, values?: readonly unknown[]): Promise<PgResult | PgResult[]>;
  on(event: 'error', listener: () => void): void;
  release(destroy: boolean): void;
}

interface PgPool {
  connect(): Promise<PgClient>;
  on(event: 'error', listener: () => void): void;
  on(event: 'connect', listener: (client: PgClient) => void): void;
  end(): Promise<void>;
}

interface PgModule {
  readonly default: {
    readonly Pool: new (options: object) => PgPool;
    readonly types: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
  };
}

interface PostgresDriverOptions {
  readonly target: ConnectionTarget;
  readonly maxConnections: number;
  readonly statementTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** For tests. */
  readonly load?: () => Promise<unknown>;
}

/** `int8`: counts, times and row numbers, all below 2^53. */
const INT8_OID = 20;
/** The server ends statements itself; this is for a server that is gone. */
const GRACE_MS = 5000;
/** Releases the locks of a process that hangs. */
const IDLE_IN_TRANSACTION_MS = 60_000;

async function loadPg(load: () => Promise<unknown>): Promise<PgModule['default']> {
  try {
    return ((await load()) as PgModule).default;
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new RuvLLMError('unsupported', 'a memory in PostgreSQL requires the package "pg": npm install pg@8', {
      data: { package: 'pg' },
    });
  }
}

/** Connects with the package `pg`, which only this file loads. */
export async function createPostgresPool(options: PostgresDriverOptions): Promise<SqlPool> {
  // A variable, so that the compiler does not require the types of `pg`.
  const name = 'pg';
  const { target, maxConnections, statementTimeoutMs, load = () => import(name) } = options;
  const { Pool, types } = await loadPg(load);
  const fail = (error: unknown): RuvLLMError => toPostgresError(error, target.redact);
  let pool: PgPool;
  try {
    pool = new Pool({
      connectionString: target.connectionString,
      application_name: 'ruvllm',
      max: maxConnections,
      connectionTimeoutMillis: options.connectTimeoutMs,
      statement_timeout: statementTimeoutMs,
      query_timeout: statementTimeoutMs + GRACE_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      keepAlive: true,
      types: {
        getTypeParser: (oid: number, format?: string) =>
          oid === INT8_OID && format !== 'binary' ? Number : types.getTypeParser(oid, format),
      },
    });
  } catch (error) {
    throw fail(error);
  }
  // Without listeners, a connection closed by the server would end this process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));

  /** A connection is not reused after a failure of the connection itself. */
  async function withClient<T>(run: (client: SqlClient) => Promise<T>): Promise<T> {
    let client: PgClient;
    try {
      client = await pool.connect();
    } catch (error) {
      throw fail(error);
    }
    let isBroken = false;
    const query = async (sql: string, values?: readonly SqlValue[]): Promise<SqlResult> => {
      try {
        const result = await client.query(sql, values);
        const last = Array.isArray(result) ? result.at(-1)! : result;
        return { rows: last.rows, numChanges: last.rowCount ?? 0 };
      } catch (error) {
        const failure = fail(error);
        // After our own timeout the answer may still arrive, and would be mistaken for that of the next statement.
        isBroken ||= failure.data['sqlState'] === '' || failure.data['isConnectionLost'] === true;
        throw failure;
      }
    };
    try {
      return await run({ query });
    } finally {
      client.release(isBroken);
    }
  }

  return {
    query: (sql, values) => withClient((client) => client.query(sql, values)),
    transaction: (run) =>
      withClient(async (client) => {
        await client.query('BEGIN');
        let value;
        try {
          value = await run(client);
        } catch (error) {
          await client.query('ROLLBACK').catch(() => {}); // the first error counts
          throw error;
        }
        await commit(client);
        return value;
      }),
    close: () => pool.end(),
  };
}

/** Without an answer the outcome is unknown: the caller must check before a retry. */
async function commit(client: SqlClient): Promise<void> {
  try {
    await client.query('COMMIT');
  } catch (error) {
    if (!(error instanceof RuvLLMError) || !(error.data['isConnectionLost'] === true || error.code === 'deadline_exceeded')) throw error; // prettier-ignore
    throw new RuvLLMError('io', `${error.message}; it is unknown whether the write succeeded`, {
      data: { ...error.data, isOutcomeUnknown: true },
      isRetryable: true,
    });
  }
}
