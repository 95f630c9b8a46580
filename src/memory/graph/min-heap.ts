/** A binary heap: the item with the lowest cost first; equal costs in any order. */
export interface MinHeap<T> {
  readonly size: number;
  push(cost: number, item: T): void;
  pop(): { readonly cost: number; readonly item: T } | undefined;
}

export function createMinHeap<T>(): MinHeap<T> {
  const nodes: { cost: number; item: T }[] = [];
  const swap = (a: number, b: number): void => void ([nodes[a], nodes[b]] = [nodes[b]!, nodes[a]!]);
  return {
    get size() {
      return nodes.length;
    },
    push(cost, item) {
      let at = nodes.push({ cost, item }) - 1;
      while (at > 0) {
        const parent = (at - 1) >> 1;
        if (nodes[parent]!.cost <= nodes[at]!.cost) return;
        swap(at, parent);
        at = parent;
      }
    },
    pop() {
      const first = nodes[0];
      const last = nodes.pop();
      if (nodes.length === 0 || last === undefined) return first;
      nodes[0] = last;
      for (let at = 0; ;) {
        const left = 2 * at + 1;
        const right = left + 1;
        let least = at;
        if (left < nodes.length && nodes[left]!.cost < nodes[least]!.cost) least = left;
        if (right < nodes.length && nodes[right]!.cost < nodes[least]!.cost) least = right;
        if (least === at) return first;
        swap(at, least);
        at = least;
      }
    },
  };
}
