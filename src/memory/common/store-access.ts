import type { FindQuery, JsonValue, MemoryRecord, MemoryStore, PutRecord } from '../types.ts';

/** Yields all pages of a query in its order. */
export async function* readPages(
  store: MemoryStore,
  tenant: string,
  query: Omit<FindQuery, 'limit' | 'after'>,
  limit = 1000,
): AsyncGenerator<readonly MemoryRecord[]> {
  let after: string | null = null;
  do {
    const { records, next } = await store.find(tenant, { ...query, limit, ...(after === null ? {} : { after }) });
    yield records;
    after = next;
  } while (after !== null);
}

/** A record of the memory's internal state. */
export function statePut(
  place: Pick<PutRecord, 'id' | 'tenant'> & Partial<Pick<PutRecord, 'createdMs' | 'expiresMs' | 'ifVersion'>>,
  body: object,
  fields: PutRecord['fields'] = {},
): PutRecord {
  return { kind: 'state', expiresMs: null, ...place, fields, body: body as JsonValue, vector: null, space: null };
}

/** The object without keys that are undefined, which a store refuses. */
export function withoutUndefined<T extends object>(object: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as never;
}
