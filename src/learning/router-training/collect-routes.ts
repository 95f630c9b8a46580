import { RuvLLMError } from '../../core/errors.ts';
import type { Trajectory } from '../../memory/schemas/trajectory.ts';
import type { Trajectories } from '../trajectories/trajectories.ts';
import { type RatedRoute, toRatedRoute } from './rated-routes.ts';

/** Sentence vectors of requests, for routers that read them. */
export interface RouteVectors {
  readonly space: string;
  /** Null: the text has no vector. */
  embed(text: string): Promise<Float32Array | null>;
  now(): number;
}

/** A rated request with what else was stored about it. */
export interface CollectedRoute {
  readonly example: RatedRoute;
  readonly trajectory: Trajectory;
}

/** Examples, all with a vector of `space` or all without. */
export interface VectoredRoutes {
  readonly examples: readonly RatedRoute[];
  readonly space: string | null;
  /** Time that embedding a request takes. */
  readonly vectorMs: number;
}

/** By quality, because a rating of the route leaves the verdict on the answer open. */
export const RATED = { field: 'quality', is: '>=', value: 0 } as const;
/** The newest examples that get vectors: embedding more would keep a core busy for minutes. */
const MAX_EMBEDDED = 1500;

export function checkAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new RuvLLMError('aborted', 'router training was cancelled; the active router stays');
}

/** The newest rated requests of a tenant, oldest first. */
export async function collectRoutes(
  trajectories: Pick<Trajectories, 'find'>,
  tenant: string,
  { limit, candidateOf }: { readonly limit: number; candidateOf(one: Trajectory): number },
): Promise<readonly CollectedRoute[]> {
  const newest = await trajectories.find(tenant, { conditions: [RATED], order: 'newest', limit });
  return newest.toReversed().flatMap((trajectory) => {
    const example = toRatedRoute(trajectory, candidateOf);
    return example === null ? [] : [{ example, trajectory }];
  });
}

/** With the vectors of the newest examples; those of requests that recalled from memory are stored. Without vectors if one is missing. */
export async function withVectors(
  routes: readonly CollectedRoute[],
  vectors: RouteVectors | null,
  signal?: AbortSignal,
): Promise<VectoredRoutes> {
  const plain = { examples: routes.map(({ example }) => example), space: null, vectorMs: 0 };
  if (vectors === null) return plain;
  const examples: RatedRoute[] = [];
  let [totalMs, numEmbedded] = [0, 0];
  for (const { example, trajectory } of routes.slice(-MAX_EMBEDDED)) {
    checkAborted(signal);
    const startMs = vectors.now();
    const stored = trajectory.space === vectors.space ? trajectory.embedding : null;
    const vector = stored ?? (await vectors.embed(example.request.turns.at(-1) ?? '').catch(() => null));
    if (vector === null) return plain;
    if (stored === null) [totalMs, numEmbedded] = [totalMs + vectors.now() - startMs, numEmbedded + 1];
    examples.push({ ...example, request: { ...example.request, vector } });
  }
  return { examples, space: vectors.space, vectorMs: totalMs / Math.max(1, numEmbedded) };
}
