import type { SessionRecords } from '../../src/runtime/sessions/session-table.ts';

/** Session records in a map that outlives tables; `<modelHash>|<tenant>|<id>`, so tests must not use `|` in names. */
export function createMemoryRecords(map: Map<string, Uint8Array>, modelHash = ''): SessionRecords {
  const keyOf = (tenant: string, id: string): string => `${modelHash}|${tenant}|${id}`;
  const keysOf = (tenant: string): string[] => [...map.keys()].filter((key) => key.split('|')[1] === tenant);
  return {
    put: (tenant, id, bytes) => void map.set(keyOf(tenant, id), bytes.slice()),
    get: (tenant, id) => map.get(keyOf(tenant, id))?.slice() ?? null,
    delete: (tenant, id) => map.delete(keyOf(tenant, id)),
    eraseTenant(tenant) {
      for (const key of keysOf(tenant)) map.delete(key);
    },
    countTenant: (tenant) => keysOf(tenant).length,
    list: (tenant) =>
      [...map.keys()].filter((key) => key.startsWith(keyOf(tenant, ''))).map((key) => key.split('|')[2]!),
  };
}
