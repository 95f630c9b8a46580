import type { PrefixNode } from '../../api/live.ts';

/** A node with its position and size, as fractions of the diagram. */
export interface PlacedNode {
  readonly node: PrefixNode;
  readonly left: number;
  readonly width: number;
  readonly top: number;
  readonly height: number;
  /** Depth from 1, for `aria-level`. */
  readonly level: number;
}

/** Groups the nodes by parent, in the server's order. */
export function childrenOf(nodes: readonly PrefixNode[]): ReadonlyMap<number | null, readonly PrefixNode[]> {
  const nodeIds = new Set(nodes.map(({ id }) => id));
  const children = new Map<number | null, PrefixNode[]>();
  for (const node of nodes) {
    const parent = node.parent !== null && nodeIds.has(node.parent) ? node.parent : null;
    const list = children.get(parent);
    if (list === undefined) children.set(parent, [node]);
    else list.push(node);
  }
  return children;
}

/**
 * Places tokens from left to right and branches below each other; the height of a node is proportional to its number of leaves. With a
 * `root` (zoom) its subtree fills the whole width.
 */
export function placeTree(nodes: readonly PrefixNode[], root: number | null): readonly PlacedNode[] {
  const children = childrenOf(nodes);
  const roots = root === null ? (children.get(null) ?? []) : nodes.filter(({ id }) => id === root);
  const firstToken = Math.min(...roots.map(({ start_token }) => start_token));
  const order: { node: PrefixNode; level: number }[] = [];
  const stack = roots.map((node) => ({ node, level: 1 })).toReversed();
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    order.push(next);
    const { level } = next;
    for (const node of (children.get(next.node.id) ?? []).toReversed()) stack.push({ node, level: level + 1 });
  }
  const numLeaves = new Map<number, number>();
  for (const { node } of order.toReversed()) {
    const nodeChildren = children.get(node.id) ?? [];
    const count = nodeChildren.reduce((sum, { id }) => sum + numLeaves.get(id)!, 0);
    numLeaves.set(node.id, Math.max(1, count));
  }
  const totalLeaves = roots.reduce((sum, { id }) => sum + numLeaves.get(id)!, 0);
  const numTokens = Math.max(1, ...order.map(({ node }) => node.start_token + node.num_tokens - firstToken));
  const topOf = new Map<number, number>();
  let nextTop = 0;
  for (const { id } of roots) {
    topOf.set(id, nextTop);
    nextTop += numLeaves.get(id)!;
  }
  return order.map(({ node, level }) => {
    let top = topOf.get(node.id)!;
    const placement = {
      node,
      left: (node.start_token - firstToken) / numTokens,
      width: node.num_tokens / numTokens,
      top: top / totalLeaves,
      height: numLeaves.get(node.id)! / totalLeaves,
      level,
    };
    for (const { id } of children.get(node.id) ?? []) {
      topOf.set(id, top);
      top += numLeaves.get(id)!;
    }
    return placement;
  });
}

/** Returns the node that a key moves to; null: none. */
export function stepInTree(key: string, current: PrefixNode, nodes: readonly PrefixNode[]): PrefixNode | null {
  const children = childrenOf(nodes);
  const siblings = children.get(nodes.some(({ id }) => id === current.parent) ? current.parent : null) ?? [];
  const index = siblings.findIndex(({ id }) => id === current.id);
  const steps: Readonly<Record<string, () => PrefixNode | undefined>> = {
    ArrowRight: () => children.get(current.id)?.[0],
    ArrowLeft: () => nodes.find(({ id }) => id === current.parent),
    ArrowDown: () => siblings[index + 1],
    ArrowUp: () => siblings[index - 1],
  };
  return steps[key]?.() ?? null;
}
