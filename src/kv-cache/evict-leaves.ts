import { createLeafHeap, isSessionPage, type PageValue, type RankedLeaf } from './leaf-order.ts';
import type { OwnerFloors } from './owner-floors.ts';
import { nodesBelow, pageSize, type CachedPage, type RadixNode } from './radix-node.ts';
import type { Retention } from './types.ts';

/** Idle (only the tree refers to it) and evictable at this retention. */
function isEvictable(cached: CachedPage, { retention, sessionSince }: Spared): boolean {
  return cached.page.numRefs === 1 && (retention === 'session' || !isSessionPage(cached, sessionSince));
}

/** Pages that an eviction spares. */
export interface Spared {
  readonly retention: Retention;
  /** Session pages not used since this call count as ordinary. */
  readonly sessionSince: number;
}

/** Nodes, parents first, with the number of evictable pages at their end; held descendants make it 0. */
export function* evictablePages(
  root: RadixNode,
  spared: Spared,
): Generator<{ readonly node: RadixNode; readonly numLast: number }> {
  const nodes = [...nodesBelow(root)];
  const counts = new Map<RadixNode, number>();
  const held = new Set<RadixNode | null>();
  for (const node of nodes.toReversed()) {
    let numLast = 0;
    if (!held.has(node)) {
      while (numLast < node.pages.length && isEvictable(node.pages.at(-1 - numLast)!, spared)) numLast++;
    }
    counts.set(node, numLast);
    if (numLast < node.pages.length) held.add(node.parent);
  }
  for (const node of nodes) yield { node, numLast: counts.get(node)! };
}

export interface EvictLeavesOptions extends Spared {
  readonly pageTokens: number;
  readonly isEnough: () => boolean;
  readonly value: PageValue;
  readonly now: number;
  /** null: none. */
  readonly floors: OwnerFloors | null;
  /** Removes the last page of the node. */
  readonly onPage: (namespace: string, node: RadixNode) => void;
}

/** Evicts pages from leaves, lowest rank first, until `isEnough`; removes empty leaves and returns the page count. */
export function evictLeaves(roots: Map<string, RadixNode>, options: EvictLeavesOptions): number {
  const { pageTokens, sessionSince, isEnough, value, now, floors, onPage } = options;
  const leaves = createLeafHeap<RankedLeaf>();
  // Removing each empty leaf at once would be quadratic where a root has 100,000 children.
  const numEmpty = new Map<RadixNode, number>();
  let numEvicted = 0;

  function offer(namespace: string, node: RadixNode): void {
    const index = node.pages.length - 1;
    const cached = node.pages[index]!;
    if (!isEvictable(cached, options)) return;
    leaves.push({
      isSession: isSessionPage(cached, sessionSince),
      value: value(cached, pageSize(node, index, pageTokens), now),
      lastUse: cached.lastUse,
      namespace,
      node,
    });
  }

  function leave(namespace: string, parent: RadixNode): void {
    const count = (numEmpty.get(parent) ?? 0) + 1;
    numEmpty.set(parent, count);
    if (count < parent.children.length) return;
    numEmpty.delete(parent);
    parent.children = [];
    if (parent.parent === null) roots.delete(namespace);
    else offer(namespace, parent);
  }

  for (const [namespace, root] of roots) {
    for (const node of nodesBelow(root)) if (node.children.length === 0) offer(namespace, node);
  }
  try {
    while (!isEnough()) {
      const leaf = leaves.pop();
      if (leaf === undefined) break;
      const { namespace, node } = leaf;
      if (floors?.isGuarded(namespace) === true) continue;
      onPage(namespace, node);
      floors?.onEvict(namespace);
      numEvicted++;
      if (node.pages.length > 0) offer(namespace, node);
      else leave(namespace, node.parent!);
    }
  } finally {
    for (const parent of numEmpty.keys()) parent.children = parent.children.filter(({ pages }) => pages.length > 0);
  }
  return numEvicted;
}
