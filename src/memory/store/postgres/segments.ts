import { RuvLLMError } from '../../../core/errors.ts';
import type { AuditArchive } from '../../audit/archive.ts';
import { withRetries } from './postgres-errors.ts';
import type { Names } from './schema.ts';
import type { SqlPool } from './sql-client.ts';
import type { Tenants } from './tenants.ts';
import { bytesOf } from '../row-values.ts';

/** A value takes at most 1 GiB on the wire, and bytes take two digits each. */
const MAX_SEGMENT_BYTES = 2 ** 28;

/** Archived segments of the audit log as rows, sealed with the tenant's key. */
export type SegmentTable = Required<Omit<AuditArchive, 'gzip' | 'gunzip'>>;

export function createSegments(pool: SqlPool, { table }: Names, tenants: Tenants): SegmentTable {
  const associated = (context: string): Uint8Array => new TextEncoder().encode(`archive\0${context}`);
  return {
    async write(name, bytes, tenant) {
      if (bytes.length > MAX_SEGMENT_BYTES) {
        throw new RuvLLMError('unsupported', `the segment has ${bytes.length} bytes, a row holds ${MAX_SEGMENT_BYTES}`);
      }
      const insert = `INSERT INTO ${table('segment')} VALUES ($1, $2, $3)
        ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed WHERE ${table('segment')}.tenant = excluded.tenant`;
      await withRetries(() =>
        pool.transaction(async (client) => {
          const { no } = await tenants.obtain(client, tenant);
          await client.query(insert, [name, no, bytes]);
        }),
      );
    },
    async read(name) {
      const { rows } = await pool.query(`SELECT sealed FROM ${table('segment')} WHERE name = $1`, [name]);
      return rows[0] === undefined ? null : bytesOf(rows[0]['sealed']);
    },
    async delete(name) {
      await withRetries(() => pool.query(`DELETE FROM ${table('segment')} WHERE name = $1`, [name]));
    },
    // Another client may be about to write the manifest of an unnamed segment, so none is removed.
    leftBehind: async () => [],
    async seal(tenant, bytes, context) {
      const { sealer } = await withRetries(() => pool.transaction((client) => tenants.obtain(client, tenant)));
      return sealer.seal(associated(context), bytes);
    },
    async unseal(tenant, bytes, context) {
      const found = await tenants.find(pool, tenant);
      const plain = found?.sealer.unseal(associated(context), bytes) ?? null;
      if (plain === null) throw new RuvLLMError('io', 'a segment of the audit log cannot be decrypted with the key of its tenant'); // prettier-ignore
      return plain;
    },
  };
}
