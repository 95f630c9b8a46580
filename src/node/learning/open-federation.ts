import { createFederation, type Federation } from '../../learning/federation/federation.ts';
import type { Memory } from '../../memory/memory.ts';
import { openNodeIdentity } from '../../platform/node/federation/node-identity.ts';
import { rememberedContentHash } from '../../platform/node/files/content-identity.ts';
import { modelPartPaths } from '../../platform/node/files/open-model-file.ts';
import { createOwnRoutes } from '../../runtime/routing/own-routes.ts';
import type { Routing } from '../../runtime/routing/types.ts';

/** Federation with the key and the peers of this machine; agents recall patterns of peers. */
export function openNodeFederation(memory: Memory, routing: Routing | null = null): Federation {
  const { store, services } = memory;
  const own = createOwnRoutes(memory, routing);
  const hashModel = (path: string): string => rememberedContentHash(modelPartPaths(path));
  const federation = createFederation({ store, services, ...openNodeIdentity(), own, hashModel });
  memory.agents.usePatterns(federation.patternsNear);
  return federation;
}
