import { RuvLLMError } from '../../../core/errors.ts';
import { createLruMap } from '../../common/lru-map.ts';
import type { Tenant, TenantKeyRing } from '../sealer.ts';
import type { OnCommit } from './group-commit.ts';
import type { SqlDatabase, SqlRow } from './sql-database.ts';
import { numberOf, textOf } from '../row-values.ts';

export interface Tenants {
  /** Null without rows. Throws `io` when there are rows and no key. */
  find(name: string): Tenant | null;
  /** In a transaction; does not cache, because the transaction may fail. */
  peek(name: string): Tenant | null;
  /** In a transaction; creates it if needed. */
  obtain(name: string, onCommit: OnCommit): Tenant;
  byNumber(no: number): Tenant;
  /** In a transaction: nothing of it is found or written from now on. Returns its id. */
  startErasing(name: string, onCommit: OnCommit): string;
  /** Ids of tenants whose erasure was not finished. */
  beingErased(): string[];
  numberOf(id: string): number | null;
  forget(id: string): void;
}

/** Open keys; opening one again takes microseconds. */
const MAX_CACHED = 1024;

export function createTenants(database: SqlDatabase, keys: TenantKeyRing): Tenants {
  const cached = createLruMap<Tenant>(MAX_CACHED);
  const ids = createLruMap<string>(MAX_CACHED);

  const selectById = 'SELECT no, id, erasing FROM tenant WHERE id = ?';
  const read = (id: string): SqlRow | undefined => database.prepare(selectById).all(id)[0];

  function openRow(row: SqlRow): Tenant | null {
    if (row['erasing'] !== 0) return null;
    const id = textOf(row['id']);
    const sealer = keys.find(id);
    if (sealer === null) {
      throw new RuvLLMError('io', `the key of tenant ${id} is missing; its records cannot be read`, {
        data: { tenantId: id, isDamaged: true },
      });
    }
    return { no: numberOf(row['no']), id, sealer };
  }

  function peek(name: string): Tenant | null {
    const id = ids.get(name) ?? keys.idOf(name);
    ids.set(name, id);
    const tenant = cached.get(id);
    if (tenant !== undefined) return tenant;
    const row = read(id);
    return row === undefined ? null : openRow(row);
  }

  return {
    peek,
    find(name) {
      const tenant = peek(name);
      if (tenant !== null) cached.set(tenant.id, tenant);
      return tenant;
    },
    obtain(name, onCommit) {
      const found = peek(name);
      if (found !== null) return found;
      const id = keys.idOf(name);
      if (read(id) !== undefined)
        throw new RuvLLMError('conflict', 'the tenant is being erased', { isRetryable: true });
      const sealer = keys.obtain(id);
      const no = database.prepare('INSERT INTO tenant (id) VALUES (?)').run(id).lastRow;
      const tenant = { no, id, sealer };
      onCommit(() => cached.set(id, tenant));
      return tenant;
    },
    byNumber(no) {
      const row = database.prepare('SELECT no, id, erasing FROM tenant WHERE no = ?').all(no)[0];
      const tenant = row === undefined ? null : (cached.peek(textOf(row['id'])) ?? openRow(row));
      if (tenant === null) throw new RuvLLMError('io', `tenant ${no} not found`);
      return tenant;
    },
    startErasing(name, onCommit) {
      const id = keys.idOf(name);
      database.prepare('UPDATE tenant SET erasing = 1 WHERE id = ?').run(id);
      onCommit(() => cached.delete(id));
      return id;
    },
    beingErased: () =>
      database
        .prepare('SELECT id FROM tenant WHERE erasing <> 0')
        .all()
        .map((row) => textOf(row['id'])),
    numberOf(id) {
      const row = read(id);
      return row === undefined ? null : numberOf(row['no']);
    },
    forget: (id) => cached.delete(id),
  };
}
