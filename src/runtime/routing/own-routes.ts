import { RuvLLMError } from '../../core/errors.ts';
import type { OwnRoutes } from '../../learning/federation/federation.ts';
import { MAX_SHARED_ROUTES } from '../../learning/federation/route-evidence.ts';
import { collectRoutes, withVectors } from '../../learning/router-training/collect-routes.ts';
import { createTrajectories } from '../../learning/trajectories/trajectories.ts';
import type { Memory } from '../../memory/memory.ts';
import { planOf, vectorsOf } from './router-loop.ts';
import type { Routing } from './types.ts';

/** The rated requests of a tenant; without configured routes, those that a router has sent somewhere. */
export function createOwnRoutes(memory: Memory, routing: Routing | null): OwnRoutes {
  const trajectories = createTrajectories(memory.store, memory.services);
  return {
    async collect(tenant, { isWhole = false } = {}) {
      if (isWhole && routing === null) throw new RuvLLMError('unsupported', 'a privacy budget requires configured candidates: those that answered so far would reveal requests; start with --route-config'); // prettier-ignore
      const candidates = routing?.config.candidates.map(({ id }) => id) ?? [];
      const place = (id: string | undefined): number => {
        if (id === undefined) return -1;
        if (!candidates.includes(id)) candidates.push(id);
        return candidates.indexOf(id);
      };
      const { candidateOf } = routing === null ? { candidateOf: ({ route }: { route?: { candidate: string } | undefined }) => place(route?.candidate) } : planOf(routing.config); // prettier-ignore
      const routes = await collectRoutes(trajectories, tenant, {
        limit: isWhole ? Infinity : MAX_SHARED_ROUTES,
        candidateOf,
      });
      if (isWhole) return { ...(await withVectors(routes, null)), candidates };
      return { ...(await withVectors(routes, vectorsOf(memory, routing?.config ?? null))), candidates };
    },
  };
}
