import { RuvLLMError } from '../../../core/errors.ts';
import { sqlStateOf } from './postgres-errors.ts';
import type { SqlClient } from './sql-client.ts';
import { textOf } from '../row-values.ts';

export interface VectorExtension {
  /** The quoted schema of its types and operators. */
  readonly schema: string;
  readonly version: string;
  /** Since 0.8.0 a search continues until enough rows match the filter. */
  readonly hasIterativeScan: boolean;
}

const SELECT = `SELECT e.extversion, quote_ident(s.nspname) AS schema
  FROM pg_extension e JOIN pg_namespace s ON s.oid = e.extnamespace WHERE e.extname = 'vector'`;

/** pgvector in this database; creates the extension if possible. */
export async function findExtension(client: SqlClient): Promise<VectorExtension> {
  let { rows } = await client.query(SELECT);
  if (rows.length === 0) {
    const available = await client.query(`SELECT 1 FROM pg_available_extensions WHERE name = 'vector'`);
    if (available.rows.length === 0) throw missing('the server does not have it; install pgvector there');
    try {
      await client.query('CREATE EXTENSION IF NOT EXISTS vector');
    } catch (error) {
      if (sqlStateOf(error) !== '42501') throw error;
      throw missing('this role may not create it; an administrator must run CREATE EXTENSION vector');
    }
    ({ rows } = await client.query(SELECT));
  }
  const version = textOf(rows[0]?.['extversion']);
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return { schema: textOf(rows[0]?.['schema']), version, hasIterativeScan: major > 0 || minor >= 8 };
}

function missing(reason: string): RuvLLMError {
  const message = `the memory requires the PostgreSQL extension "vector" (pgvector), but ${reason}. Or add ?vectors=sealed to its address, which is slower`;
  return new RuvLLMError('unsupported', message, { data: { extension: 'vector' } });
}
