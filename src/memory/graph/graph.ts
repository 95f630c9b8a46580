import { integerOption, numberOption, resolveOptions } from '../../core/options.ts';
import type { MemoryServices } from '../common/services.ts';
import { parseEdge, type EdgeRelation } from '../schemas/node.ts';
import type { MemoryEdge, MemoryStore } from '../types.ts';
import { clampWeight, decayedWeight, MIN_EDGE_WEIGHT, REINFORCE_FACTOR, WEAKEN_FACTOR } from './weights.ts';

export interface GraphOptions {
  /** Time in which an edge nobody uses loses half its weight. Default 30 days. */
  readonly halfLifeMs?: number;
  /** Edges of one relation that go out of one record; the lightest go first. Default 64. */
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
  /** As it weighs now. */
  readonly weight: number;
  readonly edge: MemoryEdge;
}

export interface ExpandQuery extends NeighbourQuery {
  /** 1 to 6. Default 2. */
  readonly hops?: number;
  /** Records that are found at most. Default 256. */
  readonly maxNodes?: number;
}

export interface ReachedNode {
  readonly id: string;
  readonly hops: number;
  /** Which of the starting records it was reached from, along the heaviest edges. */
  readonly from: string;
  /** Product of weight × confidence along the way, each at most 1. */
  readonly strength: number;
}

export interface MemoryGraph {
  /** Adds or replaces edges, and drops the lightest of a record that has too many. */
  link(tenant: string, edges: readonly NewEdge[]): Promise<void>;
  /** The heaviest first. */
  neighbours(tenant: string, id: string, query?: NeighbourQuery): Promise<readonly Neighbour[]>;
  /** What can be reached in a few steps; the strongest first. */
  expand(tenant: string, ids: readonly string[], query?: ExpandQuery): Promise<readonly ReachedNode[]>;
  /** +5 % for the edges that were used; the number that were there. */
  reinforce(tenant: string, edges: readonly EdgeKey[]): Promise<number>;
  /** −2 % for those that were offered and not used. */
  weaken(tenant: string, edges: readonly EdgeKey[]): Promise<number>;
  /** Writes down what edges of these records weigh now, and deletes those that weigh next to nothing. */
  decay(tenant: string, ids: readonly string[]): Promise<{ readonly numWritten: number; readonly numDeleted: number }>;
}

/** What one call of the store takes. */
const CALL_ITEMS = 1000;
const EDGE_PAGE = 10_000;

const keyOf = ({ from, to, relation }: EdgeKey): string => `${from}${to}${relation}`;

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

/** The edges between records, as a graph. */
export function createMemoryGraph(store: MemoryStore, services: MemoryServices, given?: GraphOptions): MemoryGraph {
  const { halfLifeMs, maxDegree } = resolveOptions<Required<GraphOptions>>('graph', given, {
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
    const found: MemoryEdge[] = [];
    for (const part of chunk(ids, CALL_ITEMS)) {
      found.push(
        ...(await store.edgesOf(tenant, {
          ids: part,
          direction,
          limit,
          ...(relations === undefined ? {} : { relations }),
        })),
      );
    }
    return found;
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
  const scale = async (tenant: string, keys: readonly EdgeKey[], factor: number): Promise<number> => {
    const wanted = new Set(keys.map(keyOf));
    const sources = [...new Set(keys.map(({ from }) => from))];
    const changed: NewEdge[] = [];
    // One source at a time: a page of edges of many could be filled by one that has thousands.
    for (const source of sources) {
      for (const edge of await store.edgesOf(tenant, { ids: [source], direction: 'out', limit: EDGE_PAGE })) {
        if (!wanted.has(keyOf(edge))) continue;
        const { from, to, relation, confidence } = edge;
        // What it lost by age first: writing it starts its age anew.
        changed.push({ from, to, relation, confidence, weight: clampWeight(weigh(edge) * factor) });
      }
    }
    await put(tenant, changed);
    return changed.length;
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
    reinforce: (tenant, edges) => scale(tenant, edges, REINFORCE_FACTOR),
    weaken: (tenant, edges) => scale(tenant, edges, WEAKEN_FACTOR),
    async decay(tenant, ids) {
      const edges = new Map<string, MemoryEdge>();
      for (const id of new Set(ids)) {
        for (const edge of await edgesOf(tenant, [id], {}, EDGE_PAGE)) edges.set(keyOf(edge), edge);
      }
      const all = [...edges.values()].map(({ updatedMs, ...edge }) => ({
        ...edge,
        weight: weigh({ ...edge, updatedMs }),
      }));
      const kept = all.filter(({ weight }) => weight >= MIN_EDGE_WEIGHT);
      const gone = all.filter(({ weight }) => weight < MIN_EDGE_WEIGHT);
      await put(tenant, kept);
      await remove(tenant, gone);
      return { numWritten: kept.length, numDeleted: gone.length };
    },
  };
}
