import { createHash } from 'node:crypto';
import type { MemoryServices } from './common/services.ts';
import { createInMemoryStore } from './store/in-memory/in-memory-store.ts';
import { RECORD_KINDS, type MemoryEdge, type MemoryRecord, type MemoryStore } from './types.ts';

/** A clock that tests move. */
export interface TestServices extends MemoryServices {
  timeMs: number;
}

export function createTestServices(timeMs = Date.UTC(2026, 0, 1)): TestServices {
  let numIds = 0;
  const services: TestServices = {
    timeMs,
    now: () => services.timeMs,
    newId: () => `0199a0b4-7c00-7000-8000-${(++numIds).toString(16).padStart(12, '0')}`,
    sha256: (bytes) => new Uint8Array(createHash('sha256').update(bytes).digest()),
  };
  return services;
}

/** A store with a place to fail, and to let others come between. */
export interface TestStore extends MemoryStore {
  /** Called before each operation; throws to make it fail. */
  onCall: (operation: string, argument: unknown) => void | Promise<void>;
}

const OPERATIONS = [
  'put',
  'get',
  'find',
  'count',
  'nearest',
  'match',
  'delete',
  'putEdges',
  'edgesOf',
  'deleteEdges',
] as const;

export function wrapStore(inner: MemoryStore): TestStore {
  const store = { ...inner, onCall: () => {} } as TestStore;
  for (const operation of OPERATIONS) {
    const run = inner[operation] as (...given: unknown[]) => Promise<unknown>;
    Object.assign(store, {
      async [operation](...given: unknown[]) {
        await store.onCall(operation, given.at(-1));
        return run.apply(inner, given);
      },
    });
  }
  return store;
}

export function createTestStore(services: MemoryServices): TestStore {
  return wrapStore(createInMemoryStore({ now: services.now }));
}

/** Everything a tenant has. */
export async function recordsOf(store: MemoryStore, tenant = 'acme'): Promise<readonly MemoryRecord[]> {
  return (await store.find(tenant, { kinds: RECORD_KINDS, order: 'oldest', limit: 1000 })).records;
}

export async function allEdgesOf(store: MemoryStore, tenant = 'acme'): Promise<readonly MemoryEdge[]> {
  const ids = (await recordsOf(store, tenant)).map(({ id }) => id);
  return store.edgesOf(tenant, { ids, direction: 'out', limit: 1000 });
}
