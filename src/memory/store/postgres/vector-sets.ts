import type { RecordKind } from '../../types.ts';
import type { CheckedPut } from '../check-put.ts';
import { checkLength } from '../checks.ts';
import { kindNumber } from '../sqlite/record-row.ts';
import type { Names } from './schema.ts';
import type { SqlClient } from './sql-client.ts';
import type { Tenant } from '../sealer.ts';
import { numberOf } from '../row-values.ts';

/** The vectors of one tenant, kind and space. */
export interface VectorSet {
  readonly no: number;
  readonly dim: number;
}

export interface VectorSets {
  find(client: SqlClient, tenant: Tenant, kinds: readonly RecordKind[], space: string, dim: number): Promise<readonly VectorSet[]>; // prettier-ignore
  /** In a transaction: the set of each put with a vector. */
  obtain(client: SqlClient, tenant: Tenant, puts: readonly CheckedPut[]): Promise<ReadonlyMap<CheckedPut, VectorSet>>;
}

export function createVectorSets({ table }: Names): VectorSets {
  const spaceHash = (tenant: Tenant, space: string): string => tenant.sealer.nameOf('space', space);

  async function find(client: SqlClient, tenant: Tenant, kinds: readonly RecordKind[], space: string, dim: number) {
    const { rows } = await client.query(
      `SELECT no, dim FROM ${table('vector_set')} WHERE tenant = $1 AND kind = ANY($2::smallint[]) AND space = $3`,
      [tenant.no, kinds.map(kindNumber), spaceHash(tenant, space)],
    );
    return rows.map((row) => {
      checkLength(dim, numberOf(row['dim']));
      return { no: numberOf(row['no']), dim };
    });
  }

  async function obtainOne(client: SqlClient, tenant: Tenant, kind: RecordKind, space: string, dim: number) {
    const [known] = await find(client, tenant, [kind], space, dim);
    if (known !== undefined) return known;
    await client.query(
      `INSERT INTO ${table('vector_set')} (tenant, kind, space, dim) VALUES ($1, $2, $3, $4)
       ON CONFLICT (tenant, kind, space) DO NOTHING`,
      [tenant.no, kindNumber(kind), spaceHash(tenant, space), dim],
    );
    return (await find(client, tenant, [kind], space, dim))[0]!; // another process may have been first
  }

  return {
    find,
    async obtain(client, tenant, puts) {
      const sets = new Map<string, VectorSet>();
      const found = new Map<CheckedPut, VectorSet>();
      for (const put of puts) {
        if (put.vector === null || put.space === null) continue;
        const key = `${put.kind} ${put.space}`;
        const { length } = put.vector;
        const set = sets.get(key) ?? (await obtainOne(client, tenant, put.kind, put.space, length));
        checkLength(length, set.dim);
        sets.set(key, set);
        found.set(put, set);
      }
      return found;
    },
  };
}
