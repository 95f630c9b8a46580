import { createExplorer, type RouteDecision, type RouteInput } from '../../learning/router/index.ts';
import { createLruMap } from '../../memory/common/lru-map.ts';
import type { JudgedRoute } from './judge-route.ts';
import type { RouteConfig } from './route-config.ts';

/** Tries other candidates within the regret budget of each tenant. */
export interface RouteExploration {
  /** A score of −Infinity excludes a candidate. */
  draw(tenant: string, judged: JudgedRoute, scores: readonly number[]): { judged: JudgedRoute; propensity: number };
  forget(tenant: string): void;
}

const MAX_TENANTS = 1000;
/** The explorer uses only scores. */
const NO_INPUT = {} as RouteInput;

/** Thompson sampling around the router's scores; `seed` differs at every start. */
export function createRouteExploration(
  { exploration, candidates }: RouteConfig,
  seed: number,
): RouteExploration | null {
  if (exploration === null) return null;
  const explorers = createLruMap<(decision: RouteDecision) => { candidate: number; propensity: number; detail: string | null }>(MAX_TENANTS); // prettier-ignore
  const explorerOf = (tenant: string) => {
    const existing = explorers.get(tenant);
    if (existing !== undefined) return existing;
    let current: RouteDecision;
    const policy = { name: 'judged', decide: () => current, update() {}, save: () => ({ kind: 'judged', numbers: {}, arrays: {} }) }; // prettier-ignore
    const explorer = createExplorer(policy, candidates.length, { ...exploration, seed });
    const draw = (decision: RouteDecision) => {
      current = decision;
      const { candidate, propensity, why } = explorer.decide(NO_INPUT);
      return { candidate, propensity, detail: why.kind === 'explored' ? why.detail : null };
    };
    explorers.set(tenant, draw);
    return draw;
  };
  return {
    forget: (tenant) => explorers.delete(tenant),
    draw(tenant, judged, scores) {
      const { candidate, propensity, detail } = explorerOf(tenant)({
        candidate: judged.candidate,
        scores: Float64Array.from(scores),
        qualities: Float64Array.from(scores),
        confidence: judged.confidence,
        why: { kind: 'best', detail: '' },
      });
      if (detail === null) return { judged, propensity };
      return { judged: { ...judged, candidate, why: { kind: 'explored', detail } }, propensity };
    },
  };
}
