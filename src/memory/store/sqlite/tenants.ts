import { RuvLLMError } from '../../../core/errors.ts';
import type { Tenant, TenantKeyRing } from '../sealer.ts';
import type { OnCommit } from './group-commit.ts';
import type { SqlDatabase, SqlRow } from './sql-database.ts';
import { numberOf, textOf } from '../row-values.ts';

export interface Tenants {
  /** Null when there is nothing of this tenant. Throws `io` when there are rows and no key to them. */
  find(name: string): Tenant | null;
  /** Inside of a transaction, whose tenants nobody may remember before it is committed. */
  peek(name: string): Tenant | null;
  /** Inside of a transaction: made when there is none. */
  obtain(name: string, onCommit: OnCommit): Tenant;
  byNumber(no: number): Tenant;
  /** Inside of a transaction: from now on nothing of it is found or written; its id. */
  startErasing(name: string, onCommit: OnCommit): string;
  /** Ids of those whose erasing was not finished. */
  beingErased(): string[];
  numberOf(id: string): number | null;
  forget(id: string): void;
}

/** Keys that are held open; to open one again costs microseconds. */
const MAX_KNOWN = 1024;

export function createTenants(database: SqlDatabase, keys: TenantKeyRing): Tenants {
  const known = new Map<string, Tenant>();
  const ids = new Map<string, string>();

  const selectById = 'SELECT no, id, erasing FROM tenant WHERE id = ?';
  const read = (id: string): SqlRow | undefined => database.prepare(selectById).all(id)[0];

  function remember(tenant: Tenant): Tenant {
    known.delete(tenant.id);
    for (const oldest of known.keys()) {
      if (known.size < MAX_KNOWN) break;
      known.delete(oldest);
    }
    known.set(tenant.id, tenant);
    return tenant;
  }

  function openRow(row: SqlRow): Tenant | null {
    if (row['erasing'] !== 0) return null;
    const id = textOf(row['id']);
    const sealer = keys.find(id);
    if (sealer === null) {
      throw new RuvLLMError('io', `the key of tenant ${id} is missing: its records cannot be read`, {
        data: { tenantId: id },
      });
    }
    return { no: numberOf(row['no']), id, sealer };
  }

  /** The id of a name is always the same, and takes a hash. */
  function idOf(name: string): string {
    const cached = ids.get(name);
    if (cached !== undefined) return cached;
    const id = keys.idOf(name);
    if (ids.size >= MAX_KNOWN) ids.clear();
    ids.set(name, id);
    return id;
  }

  function peek(name: string): Tenant | null {
    const id = idOf(name);
    const cached = known.get(id);
    if (cached !== undefined) return cached;
    const row = read(id);
    return row === undefined ? null : openRow(row);
  }

  return {
    peek,
    find(name) {
      const tenant = peek(name);
      return tenant === null ? null : remember(tenant);
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
      onCommit(() => remember(tenant));
      return tenant;
    },
    byNumber(no) {
      const row = database.prepare('SELECT no, id, erasing FROM tenant WHERE no = ?').all(no)[0];
      const tenant = row === undefined ? null : (known.get(textOf(row['id'])) ?? openRow(row));
      if (tenant === null) throw new RuvLLMError('io', `there is no tenant of number ${no}`);
      return tenant;
    },
    startErasing(name, onCommit) {
      const id = keys.idOf(name);
      database.prepare('UPDATE tenant SET erasing = 1 WHERE id = ?').run(id);
      onCommit(() => known.delete(id));
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
    forget: (id) => void known.delete(id),
  };
}
