import { createLruMap } from '../../memory/common/lru-map.ts';
import type { MemoryRecord, MemoryStore, PutRecord } from '../../memory/types.ts';
import type { WatchStore } from '../../memory/watched-store.ts';
import { BANK_SOURCE, contentsOf } from './pattern.ts';
import { createPatternTable, type NearPattern, type PatternTable } from './pattern-table.ts';

/** Patterns in this thread, so that a request need not ask the memory's. */
export interface PatternTables {
  /** Null: the tenant's patterns are not loaded yet. */
  search(tenant: string, query: { readonly vector: Float32Array; readonly space: string; readonly k: number }): readonly NearPattern[] | null; // prettier-ignore
  isLoaded(tenant: string, space: string): boolean;
  /** Begins to load the patterns of a tenant, once. */
  load(tenant: string, space: string, dim: number): void;
}

/** Tenants and spaces whose patterns are in this thread; 100,000 patterns take 200 MB. */
const MAX_TABLES = 16;
/** Records of one read; each blocks the memory's thread for a few milliseconds. */
const PAGE = 50;

interface Loaded {
  readonly tenant: string;
  readonly table: PatternTable;
  isLoaded: boolean;
  /** Written or deleted while loading: what the load reads of them is older. */
  readonly changed: Set<string>;
}

/** The length keeps a tenant apart from a space that begins with its end. */
const keyOf = (tenant: string, space: string): string => `${tenant.length} ${tenant} ${space}`;

export function createPatternTables(store: MemoryStore, watch: WatchStore, maxPatterns: number): PatternTables {
  const tables = createLruMap<Loaded>(MAX_TABLES);

  /** Ignores patterns of users, and contents that cannot be read. */
  function add({ table }: Loaded, record: PutRecord | MemoryRecord): void {
    if (record.kind !== 'pattern' || record.fields['source'] !== BANK_SOURCE || record.vector === null) return;
    const { text, metadata } = record.body as { readonly text: string; readonly metadata: unknown };
    table.set({ ...contentsOf(metadata, record.id), id: record.id, text }, record.vector);
  }

  async function load(tenant: string, space: string, loaded: Loaded): Promise<void> {
    const filter = { fields: [{ field: 'source', is: '=', value: BANK_SOURCE } as const] };
    let after: string | undefined;
    do {
      const page = await store.find(tenant, { kinds: ['pattern'], filter, order: 'oldest', limit: PAGE, ...(after === undefined ? {} : { after }) }); // prettier-ignore
      for (const record of page.records) {
        if (record.space === space && !loaded.changed.has(record.id)) add(loaded, record);
      }
      if (loaded.table.size > maxPatterns) return; // stays unloaded; the memory's thread searches
      after = page.next ?? undefined;
    } while (after !== undefined && tables.peek(keyOf(tenant, space)) === loaded);
    loaded.isLoaded = true;
    loaded.changed.clear();
  }

  const begin = (tenant: string, space: string, dim: number): void => {
    const key = keyOf(tenant, space);
    if (tables.peek(key) !== undefined) return;
    const loaded = { tenant, table: createPatternTable(dim), isLoaded: false, changed: new Set<string>() };
    tables.set(key, loaded);
    // After a failure the memory's thread searches until the next start.
    load(tenant, space, loaded).catch(() => {});
  };

  watch({
    put(records) {
      for (const record of records) {
        if (record.kind !== 'pattern' || record.space === null) continue;
        const key = keyOf(record.tenant, record.space);
        const loaded = tables.peek(key);
        if (loaded === undefined) continue;
        if (!loaded.isLoaded) loaded.changed.add(record.id);
        try {
          add(loaded, record);
        } catch {
          tables.delete(key); // more than WASM addresses; the record is stored, and the memory's thread searches
        }
      }
    },
    delete(tenant, ids) {
      for (const [, { tenant: owner, table, isLoaded, changed }] of tables.entries()) {
        if (owner !== tenant) continue;
        for (const id of ids) {
          if (!isLoaded) changed.add(id);
          table.delete(id);
        }
      }
    },
    erase(tenant) {
      for (const [key, { tenant: owner }] of tables.entries()) if (owner === tenant) tables.delete(key);
    },
  });

  return {
    isLoaded: (tenant, space) => tables.peek(keyOf(tenant, space))?.isLoaded ?? false,
    load: begin,
    search(tenant, { vector, space, k }) {
      const loaded = tables.get(keyOf(tenant, space));
      return loaded?.isLoaded === true ? loaded.table.search(vector, k) : null;
    },
  };
}
