import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import type { MemoryServices } from '../common/services.ts';
import { parseEdge, type EdgeRelation } from '../schemas/node.ts';
import type { Verdict } from '../schemas/trajectory.ts';
import type { MemoryEdge, MemoryStore } from '../types.ts';
import { decayedEffect, decayedWeight, RATED_WEIGHTS } from './weights.ts';

export interface GraphOptions {
  /** Time in which an edge that is not renewed loses half its weight. Default 30 days. */
  readonly halfLifeMs?: number;
  /** Maximum outgoing edges of a record per relation; the lightest are dropped. Default 64. */
  readonly maxDegree?: number;
}

export type NewEdge = Omit<MemoryEdge, 'updatedMs'>;
export type EdgeKey = Pick<MemoryEdge, 'from' | 'to' | 'relation'>;

export interface NeighbourQuery {
  readonly relations?: readonly EdgeRelation[];
  /** Default `both`. */
  readonly direction?: 'out' | 'in' | 'both';
  /** Default 100. */
  readonly limit?: number;
}

export interface Neighbour {
  readonly id: string;
  /** After decay. */
  readonly weight: number;
  readonly edge: MemoryEdge;
}

export interface ExpandQuery extends NeighbourQuery {
  /** 1 to 6. Default 2. */
  readonly hops?: number;
  /** Maximum records returned. Default 256. */
  readonly maxNodes?: number;
}

export interface ReachedNode {
  readonly id: string;
  readonly hops: number;
  /** The starting record it was reached from along the heaviest edges. */
  readonly from: string;
  /** Product of weight × confidence along the path, each at most 1. */
  readonly strength: number;
}

/** An answer and the sources in its prompt. */
export interface RatedAnswer {
  /** Id of its record. */
  readonly id: string;
  readonly verdict: Verdict;
  readonly sources: readonly { readonly id: string; readonly isUsed: boolean | null }[];
}

export interface SourceRating {
  readonly sourceId: string;
  readonly answerId: string;
  /** Above 0 for a good answer, below for a bad one; halves with each half-life. */
  readonly effect: number;
}

export interface MemoryGraph {
  /** Adds or replaces edges and drops the lightest edges of a record above `maxDegree`. */
  link(tenant: string, edges: readonly NewEdge[]): Promise<void>;
  /** Heaviest first. */
  neighbours(tenant: string, id: string, query?: NeighbourQuery): Promise<readonly Neighbour[]>;
  /** Records within `hops` edges, strongest first. */
  expand(tenant: string, ids: readonly string[], query?: ExpandQuery): Promise<readonly ReachedNode[]>;
  /** Stores the rating of an answer in its edges to the sources it used. Neutral ratings and unused sources have no edge. */
  rate(tenant: string, answer: RatedAnswer): Promise<void>;
  /** Ratings of answers that used these sources, newest first. */
  ratings(tenant: string, sourceIds: readonly string[], limit: number): Promise<readonly SourceRating[]>;
}

/** Items per call of the store. */
const CALL_ITEMS = 1000;
const EDGE_PAGE = 10_000;
/** From an answer to a source it used. */
const USE_RELATION = 'cites';

function chunk<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

const readQuery = (query: ExpandQuery = {}) =>
  resolveOptions<Required<Omit<ExpandQuery, 'relations' | 'direction'>> & ExpandQuery>('graph query', query, {
    limit: integerOption(100, 1, EDGE_PAGE),
    hops: integerOption(2, 1, 6),
    maxNodes: integerOption(256, 1, 10_000),
    relations: (value) => value as readonly EdgeRelation[],
    direction: (value) => (value ?? 'both') as 'both',
  });

export function createMemoryGraph(store: MemoryStore, services: MemoryServices, options?: GraphOptions): MemoryGraph {
  const { halfLifeMs, maxDegree } = resolveOptions<Required<GraphOptions>>('graph', options, {
    halfLifeMs: numberOption(30 * 86_400_000, 1, 3_650 * 86_400_000),
    maxDegree: integerOption(64, 1, 5000),
  });
  const weigh = (edge: MemoryEdge): number => decayedWeight(edge, services.now(), halfLifeMs);
  const edgesOf = async (
    tenant: string,
    ids: readonly string[],
    query: NeighbourQuery,
    limit: number,
  ): Promise<MemoryEdge[]> => {
    const { relations, direction = 'both' } = query;
    const edges: MemoryEdge[] = [];
    for (const part of chunk(ids, CALL_ITEMS)) {
      edges.push(
        ...(await store.edgesOf(tenant, {
          ids: part,
          direction,
          limit,
          ...(relations === undefined ? {} : { relations }),
        })),
      );
    }
    return edges;
  };
  const put = async (tenant: string, edges: readonly NewEdge[]): Promise<void> => {
    for (const part of chunk(edges, CALL_ITEMS)) await store.putEdges(tenant, part);
  };
  const remove = async (tenant: string, edges: readonly EdgeKey[]): Promise<void> => {
    for (const part of chunk(edges, CALL_ITEMS)) {
      await store.deleteEdges(tenant, part.map(({ from, to, relation }) => ({ from, to, relation }))); // prettier-ignore
    }
  };
  const trimDegree = async (tenant: string, from: string, relation: string): Promise<void> => {
    const edges = await store.edgesOf(tenant, {
      ids: [from],
      direction: 'out',
      relations: [relation],
      limit: EDGE_PAGE,
    });
    if (edges.length <= maxDegree) return;
    await remove(tenant, [...edges].sort((a, b) => weigh(b) - weigh(a)).slice(maxDegree)); // prettier-ignore
  };

  return {
    async link(tenant, edges) {
      await put(tenant, edges.map(parseEdge));
      const places = new Map(edges.map(({ from, relation }) => [`${from}${relation}`, { from, relation }]));
      for (const { from, relation } of places.values()) await trimDegree(tenant, from, relation);
    },
    async neighbours(tenant, id, query) {
      const resolved = readQuery(query);
      const edges = await edgesOf(tenant, [id], resolved, resolved.limit);
      const list = edges.map((edge) => ({ id: edge.from === id ? edge.to : edge.from, weight: weigh(edge), edge }));
      return list.sort((a, b) => b.weight - a.weight);
    },
    async expand(tenant, ids, query) {
      const resolved = readQuery(query);
      const reached = new Map<string, ReachedNode>();
      let frontier = [...new Set(ids)].map((id): ReachedNode => ({ id, hops: 0, from: id, strength: 1 }));
      for (const node of frontier) reached.set(node.id, node);
      const numStarts = reached.size;
      for (let hops = 1; hops <= resolved.hops && frontier.length > 0; hops++) {
        const at = new Map(frontier.map((node) => [node.id, node]));
        const next = new Map<string, ReachedNode>();
        for (const edge of await edgesOf(tenant, [...at.keys()], resolved, EDGE_PAGE)) {
          const step = Math.min(1, weigh(edge)) * edge.confidence;
          for (const [start, end] of [
            [edge.from, edge.to],
            [edge.to, edge.from],
          ] as const) {
            // prettier-ignore
            const node = at.get(start);
            const isAgainst = resolved.direction === (start === edge.from ? 'in' : 'out');
            if (node === undefined || isAgainst || reached.has(end)) continue;
            const strength = node.strength * step;
            if (strength > (next.get(end)?.strength ?? 0)) next.set(end, { id: end, hops, from: node.from, strength });
          }
        }
        const room = resolved.maxNodes - (reached.size - numStarts);
        frontier = [...next.values()].sort((a, b) => b.strength - a.strength).slice(0, room);
        for (const node of frontier) reached.set(node.id, node);
      }
      return [...reached.values()].slice(numStarts).sort((a, b) => b.strength - a.strength);
    },
    async rate(tenant, { id: from, verdict, sources }) {
      const weight = verdict === 'success' || verdict === 'failure' ? RATED_WEIGHTS[verdict] : null;
      const edgeTo = ({ id: to }: { readonly id: string }) => ({ from, to, relation: USE_RELATION });
      const isRated = ({ isUsed }: (typeof sources)[number]): boolean => weight !== null && isUsed === true;
      await remove(tenant, sources.filter((source) => !isRated(source)).map(edgeTo)); // prettier-ignore
      const used = sources.filter(isRated);
      if (used.length === 0) return;
      const records = await store.get(tenant, [from, ...used.map(({ id }) => id)]);
      if (records[0] === null) return;
      // Deleted sources get no edge.
      const kept = used.filter((_, i) => records[i + 1] !== null);
      await put(tenant, kept.map((source) => ({ ...edgeTo(source), weight: weight!, confidence: 1 }))); // prettier-ignore
    },
    async ratings(tenant, sourceIds, limit) {
      const edges = await edgesOf(tenant, sourceIds, { relations: [USE_RELATION], direction: 'in' }, EDGE_PAGE);
      const newest = edges.toSorted((a, b) => b.updatedMs - a.updatedMs).slice(0, limit);
      return newest.map((edge) => ({
        sourceId: edge.to,
        answerId: edge.from,
        effect: decayedEffect(edge, services.now(), halfLifeMs),
      }));
    },
  };
}
