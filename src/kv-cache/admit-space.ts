import { type CacheNamespace, namespaceId } from './cache-namespace.ts';

/** Tenants come and go; a dropped space is opened again with the next request. */
const MAX_SPACES = 1024;

/** Opens the space of a namespace in a store, and drops the least recently admitted ones. */
export function admitSpace<Space>(
  spaces: Map<string, Space>,
  store: { open(namespace: CacheNamespace): Space },
  namespace: CacheNamespace,
): void {
  const id = namespaceId(namespace);
  const space = spaces.get(id) ?? store.open(namespace);
  spaces.delete(id); // a Map iterates in insertion order: least recently used first
  spaces.set(id, space);
  for (const oldest of spaces.keys()) {
    if (spaces.size <= MAX_SPACES) break;
    spaces.delete(oldest);
  }
}
