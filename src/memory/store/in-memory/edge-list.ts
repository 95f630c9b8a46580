import type { EdgeQuery, MemoryEdge } from '../../types.ts';
import type { EdgeKey } from '../check-query.ts';

export interface EdgeList {
  readonly size: number;
  put(edge: MemoryEdge): void;
  all(): Iterable<MemoryEdge>;
  find(query: EdgeQuery): MemoryEdge[];
  delete(key: EdgeKey): boolean;
  deleteOf(id: string): void;
  /** The first one written; false: none. */
  deleteOldest(): boolean;
}

const keyOf = ({ from, to, relation }: EdgeKey): string => `${from} ${to} ${relation}`;

/** Heaviest first, then in a stable order. */
function compareEdges(a: MemoryEdge, b: MemoryEdge): number {
  return b.weight - a.weight || (keyOf(a) < keyOf(b) ? -1 : 1);
}

export function createEdgeList(): EdgeList {
  const edges = new Map<string, MemoryEdge>();
  const byEnd = new Map<string, Set<string>>();
  const endsOf = ({ from, to }: EdgeKey): readonly string[] => (from === to ? [from] : [from, to]);

  function remove(key: string): boolean {
    const edge = edges.get(key);
    if (edge === undefined) return false;
    edges.delete(key);
    for (const end of endsOf(edge)) {
      byEnd.get(end)?.delete(key);
      if (byEnd.get(end)?.size === 0) byEnd.delete(end);
    }
    return true;
  }

  return {
    get size() {
      return edges.size;
    },
    put(edge) {
      const key = keyOf(edge);
      remove(key);
      edges.set(key, edge);
      for (const end of endsOf(edge)) {
        if (!byEnd.has(end)) byEnd.set(end, new Set());
        byEnd.get(end)!.add(key);
      }
    },
    all: () => edges.values(),
    find({ ids, direction, relations, limit }) {
      const wanted = new Set(ids);
      const keys = new Set([...wanted].flatMap((id) => [...(byEnd.get(id) ?? [])]));
      const found = [...keys].map((key) => edges.get(key)!).filter(({ from, to, relation }) => {
        const isOut = direction !== 'in' && wanted.has(from);
        const isIn = direction !== 'out' && wanted.has(to);
        return (isOut || isIn) && (relations?.includes(relation) ?? true);
      }); // prettier-ignore
      return found.sort(compareEdges).slice(0, limit).map((edge) => ({ ...edge })); // prettier-ignore
    },
    delete: (key) => remove(keyOf(key)),
    deleteOf(id) {
      for (const key of byEnd.get(id) ?? []) remove(key);
    },
    deleteOldest() {
      const [first] = edges.keys();
      return first !== undefined && remove(first);
    },
  };
}
