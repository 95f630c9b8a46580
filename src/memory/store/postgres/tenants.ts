import { RuvLLMError } from '../../../core/errors.ts';
import type { Tenant, TenantSealer } from '../sealer.ts';
import type { Names } from './schema.ts';
import type { SqlClient, SqlRow } from './sql-client.ts';
import { bytesOf, numberOf, textOf } from '../row-values.ts';

/** Creates and opens the wrapped keys of tenants. */
export interface WrappedKeys {
  /** The tenant's visible id. */
  idOf(tenant: string): string;
  /** A new key, wrapped. */
  create(tenantId: string): Uint8Array;
  /** Throws `io` for another master key. */
  open(tenantId: string, wrapped: Uint8Array): TenantSealer;
}

export interface Tenants {
  /** Null without data. Not cached, because another process may erase it. */
  find(client: SqlClient, name: string): Promise<Tenant | null>;
  /** Locks the tenant against erasure until the end of the transaction. */
  hold(client: SqlClient, name: string): Promise<Tenant | null>;
  /** The same; creates it if needed. */
  obtain(client: SqlClient, name: string): Promise<Tenant>;
  all(client: SqlClient): Promise<readonly Tenant[]>;
  /** Waits for holders; the commit destroys the key. */
  destroyKey(client: SqlClient, name: string): Promise<void>;
  /** Tenants whose rows are not yet deleted. */
  beingErased(client: SqlClient): Promise<readonly number[]>;
}

export function createTenants({ table }: Names, keys: WrappedKeys): Tenants {
  const columns = `SELECT no, id, key FROM ${table('tenant')}`;

  function open(row: SqlRow | undefined): Tenant | null {
    if (row === undefined || row['key'] === null) return null;
    const id = textOf(row['id']);
    return { no: numberOf(row['no']), id, sealer: keys.open(id, bytesOf(row['key'])) };
  }
  const select = async (client: SqlClient, id: string, lock: string): Promise<SqlRow | undefined> =>
    (await client.query(`${columns} WHERE id = $1 ${lock}`, [id])).rows[0];

  return {
    find: async (client, name) => open(await select(client, keys.idOf(name), '')),
    hold: async (client, name) => open(await select(client, keys.idOf(name), 'FOR SHARE')),
    async obtain(client, name) {
      const id = keys.idOf(name);
      let row = await select(client, id, 'FOR SHARE');
      if (row === undefined) {
        const insert = `INSERT INTO ${table('tenant')} (id, key) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING`;
        await client.query(insert, [id, keys.create(id)]);
        row = await select(client, id, 'FOR SHARE'); // another process may have been first
      }
      const tenant = open(row);
      if (tenant === null) throw new RuvLLMError('conflict', 'the tenant is being erased', { isRetryable: true });
      return tenant;
    },
    all: async (client) =>
      (await client.query(`${columns} WHERE key IS NOT NULL ORDER BY no`)).rows.map((row) => open(row)!),
    async destroyKey(client, name) {
      await client.query(`UPDATE ${table('tenant')} SET key = NULL WHERE id = $1`, [keys.idOf(name)]);
    },
    beingErased: async (client) =>
      (await client.query(`SELECT no FROM ${table('tenant')} WHERE key IS NULL`)).rows.map((row) => numberOf(row['no'])), // prettier-ignore
  };
}
