import { expect, test } from 'vitest';
import { RuvLLMError } from '../../../core/errors.ts';
import type { SqlClient, SqlRow } from './sql-client.ts';
import { findExtension } from './vector-extension.ts';

/** A server that has the extension, could have it, or not. */
function createServer(state: { version: string | null; isAvailable: boolean; mayCreate: boolean }): SqlClient {
  let { version } = state;
  return {
    async query(sql) {
      let rows: SqlRow[] = [];
      if (sql.includes('pg_available_extensions')) rows = state.isAvailable ? [{}] : [];
      else if (sql.startsWith('CREATE')) {
        if (!state.mayCreate) throw new RuvLLMError('io', 'denied', { data: { sqlState: '42501' } });
        version = '0.8.7';
      } else if (version !== null) rows = [{ extversion: version, schema: 'public' }];
      return { rows, numChanges: 0 };
    },
  };
}

test('[PG5] pgvector is found, or created, or named in the refusal', async () => {
  const find = (version: string | null, isAvailable = false, mayCreate = false) =>
    findExtension(createServer({ version, isAvailable, mayCreate }));
  expect(await find('0.7.4')).toEqual({ schema: 'public', version: '0.7.4', hasIterativeScan: false });
  expect(await find('0.8.0')).toMatchObject({ hasIterativeScan: true });
  expect(await find('1.0.0')).toMatchObject({ hasIterativeScan: true });
  expect(await find(null, true, true)).toMatchObject({ version: '0.8.7' });
  const refusal = { code: 'unsupported', data: { extension: 'vector' } };
  await expect(find(null, true)).rejects.toMatchObject({ ...refusal, message: expect.stringContaining('run CREATE EXTENSION vector') }); // prettier-ignore
  await expect(find(null)).rejects.toMatchObject({ ...refusal, message: expect.stringContaining('install pgvector') });
});
