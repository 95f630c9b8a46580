import { decodeNamespace } from './cache-namespace.ts';
import type { RadixNode } from './radix-node.ts';
import type { PrefixQuery, PrefixNode, PrefixReport } from './types.ts';

interface Visited {
  readonly node: RadixNode;
  readonly parent: Visited | null;
  readonly tenant: string;
  readonly adapterHash: string | null;
  readonly depth: number;
  readonly startToken: number;
}

/** Nodes visited before selecting: about 2 ms, during which sequences wait. */
const MAX_VISITED = 5000;

/** Reports the most used prefixes, visiting a bounded number of nodes near the roots. */
export function describePrefixes(
  roots: ReadonlyMap<string, RadixNode>,
  now: number,
  query: PrefixQuery,
): Pick<PrefixReport, 'nodes' | 'isComplete'> {
  const visited: Visited[] = [];
  let isComplete = true;

  function visit(nodes: readonly RadixNode[], more: Omit<Visited, 'node'>): void {
    for (const node of nodes) {
      if (visited.length < MAX_VISITED && more.depth < query.maxDepth) visited.push({ node, ...more });
      else isComplete = false;
    }
  }

  for (const [id, root] of roots) {
    const namespace = decodeNamespace(id);
    // A private namespace is not a shared prefix.
    if (namespace === null || (query.tenant !== null && query.tenant !== namespace.tenant)) continue;
    const { tenant, adapterHash } = namespace;
    visit(root.children, { parent: null, tenant, adapterHash, depth: 0, startToken: 0 });
  }
  for (let i = 0; i < visited.length; i++) {
    const one = visited[i]!;
    const { node, tenant, adapterHash, depth, startToken } = one;
    visit(node.children, {
      parent: one,
      tenant,
      adapterHash,
      depth: depth + 1,
      startToken: startToken + node.numTokens,
    });
  }
  // A prompt that reaches a page also reached the pages before it, so a parent's uses are never below its children's.
  const byUse = [...visited].sort((a, b) => b.node.pages[0]!.numUses - a.node.pages[0]!.numUses || a.depth - b.depth);
  const ids = new Map<Visited, number>();
  for (const one of byUse) {
    if (ids.size === query.maxNodes) break;
    if (one.parent === null || ids.has(one.parent)) ids.set(one, ids.size);
  }
  const nodes = [...ids].map(([one, id]) =>
    describe(one, id, one.parent === null ? null : ids.get(one.parent)!, now, query.numPreview),
  );
  return { nodes, isComplete: isComplete && ids.size === visited.length };
}

function describe(one: Visited, id: number, parent: number | null, now: number, numPreview: number): PrefixNode {
  const { node, tenant, adapterHash, depth, startToken } = one;
  const numFloatPages = node.pages.filter(({ page }) => page.tier === 'float').length;
  const [first] = node.pages;
  return {
    id,
    parent,
    tenant,
    adapterHash,
    depth,
    startToken,
    numTokens: node.numTokens,
    numFloatPages,
    numPackedPages: node.pages.length - numFloatPages,
    numUsedPages: node.pages.filter(({ page }) => page.numRefs > 1).length,
    isSession: first!.isSession,
    numUses: first!.numUses,
    lastUseAgo: now - first!.lastUse,
    numChildren: node.children.length,
    // Keys of images are no tokens.
    previewIds: [...node.tokens.subarray(0, Math.min(numPreview, node.numTokens))].filter((id) => id >= 0),
  };
}
