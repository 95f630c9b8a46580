import type { PrefixNode } from '../../api/live.ts';

/** A node with its place in the picture, all between 0 and 1. */
export interface PlacedNode {
  readonly node: PrefixNode;
  readonly left: number;
  readonly width: number;
  readonly top: number;
  readonly height: number;
  /** From 1, for screen readers. */
  readonly level: number;
}

/** Who is below whom, in the order the server has them. */
export function childrenOf(nodes: readonly PrefixNode[]): ReadonlyMap<number | null, readonly PrefixNode[]> {
  const known = new Set(nodes.map(({ id }) => id));
  const children = new Map<number | null, PrefixNode[]>();
  for (const node of nodes) {
    const parent = node.parent !== null && known.has(node.parent) ? node.parent : null;
    const list = children.get(parent);
    if (list === undefined) children.set(parent, [node]);
    else list.push(node);
  }
  return children;
}

/**
 * Tokens from left to right, branches below each other, each as high as what hangs on it has ends. With a `root` only what is below it,
 * over the whole width: that is zooming.
 */
export function placeTree(nodes: readonly PrefixNode[], root: number | null): readonly PlacedNode[] {
  const children = childrenOf(nodes);
  const tops = root === null ? (children.get(null) ?? []) : nodes.filter(({ id }) => id === root);
  const from = Math.min(...tops.map(({ start_token }) => start_token));
  const order: { node: PrefixNode; level: number }[] = [];
  const waiting = tops.map((node) => ({ node, level: 1 })).toReversed();
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    order.push(next);
    const { level } = next;
    for (const node of (children.get(next.node.id) ?? []).toReversed()) waiting.push({ node, level: level + 1 });
  }
  const ends = new Map<number, number>();
  for (const { node } of order.toReversed()) {
    const below = children.get(node.id) ?? [];
    ends.set(node.id, below.length === 0 ? 1 : below.reduce((sum, { id }) => sum + ends.get(id)!, 0));
  }
  const numEnds = tops.reduce((sum, { id }) => sum + ends.get(id)!, 0);
  const numTokens = Math.max(1, ...order.map(({ node }) => node.start_token + node.num_tokens - from));
  const topOf = new Map<number, number>();
  let nextTop = 0;
  for (const { id } of tops) {
    topOf.set(id, nextTop);
    nextTop += ends.get(id)!;
  }
  return order.map(({ node, level }) => {
    let top = topOf.get(node.id)!;
    const placed = {
      node,
      left: (node.start_token - from) / numTokens,
      width: node.num_tokens / numTokens,
      top: top / numEnds,
      height: ends.get(node.id)! / numEnds,
      level,
    };
    for (const { id } of children.get(node.id) ?? []) {
      topOf.set(id, top);
      top += ends.get(id)!;
    }
    return placed;
  });
}

/** Which node a key leads to; null: none. */
export function stepInTree(key: string, at: PrefixNode, nodes: readonly PrefixNode[]): PrefixNode | null {
  const children = childrenOf(nodes);
  const siblings = children.get(nodes.some(({ id }) => id === at.parent) ? at.parent : null) ?? [];
  const index = siblings.findIndex(({ id }) => id === at.id);
  const steps: Readonly<Record<string, () => PrefixNode | undefined>> = {
    ArrowRight: () => children.get(at.id)?.[0],
    ArrowLeft: () => nodes.find(({ id }) => id === at.parent),
    ArrowDown: () => siblings[index + 1],
    ArrowUp: () => siblings[index - 1],
  };
  return steps[key]?.() ?? null;
}
