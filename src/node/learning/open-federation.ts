import { createFederation, type Federation } from '../../learning/federation/federation.ts';
import type { Memory } from '../../memory/memory.ts';
import { openNodeIdentity } from '../../platform/node/federation/node-identity.ts';
import { createOwnRoutes } from '../../runtime/routing/own-routes.ts';
import type { Routing } from '../../runtime/routing/types.ts';

/** Federation with the key and the peers of this machine. */
export function openNodeFederation(memory: Memory, routing: Routing | null = null): Federation {
  const { store, services } = memory;
  return createFederation({ store, services, ...openNodeIdentity(), own: createOwnRoutes(memory, routing) });
}
