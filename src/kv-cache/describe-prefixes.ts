import { decodeNamespace } from './cache-namespace.ts';
import type { RadixNode } from './radix-node.ts';

/** Which part of the prefix trees is to be told. */
export interface PrefixQuery {
  /** Whose; null: everybody's. */
  readonly tenant: string | null;
  /** Levels below the beginning. */
  readonly maxDepth: number;
  readonly maxNodes: number;
  /** Tokens of each node that are told. */
  readonly numPreview: number;
}

/** A run of tokens that nothing diverges from; plain data. */
export interface PrefixNode {
  readonly id: number;
  /** Null: it begins a prompt. */
  readonly parent: number | null;
  readonly tenant: string;
  readonly adapterHash: string | null;
  /** 0 for the beginning. */
  readonly depth: number;
  /** Tokens before it. */
  readonly startToken: number;
  readonly numTokens: number;
  readonly numFloatPages: number;
  readonly numPackedPages: number;
  /** Pages that somebody else than the tree holds. */
  readonly numUsedPages: number;
  readonly isSession: boolean;
  /** How often prompts have reached it. */
  readonly numUses: number;
  /** Calls of the cache since the last use. */
  readonly lastUseAgo: number;
  readonly numChildren: number;
  readonly previewIds: readonly number[];
}

export interface PrefixReport {
  readonly pageTokens: number;
  readonly floatPageBytes: number;
  readonly packedPageBytes: number;
  /** Parents before children, the most used first. */
  readonly nodes: readonly PrefixNode[];
  /** False: there are more nodes than these. */
  readonly isComplete: boolean;
}

interface Visited {
  readonly node: RadixNode;
  readonly parent: Visited | null;
  readonly tenant: string;
  readonly adapterHash: string | null;
  readonly depth: number;
  readonly startToken: number;
}

/** Looked at before some are chosen: about two milliseconds, and sequences wait for them. */
const MAX_VISITED = 5000;

/** What the trees hold, the most used first; looks at a bounded number of nodes, those near the beginnings. */
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
    // What is known to one sequence only is nobody's prefix.
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
  // A prompt that reaches a page has reached those before it, so a parent is never used less than its children.
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
    previewIds: [...node.tokens.subarray(0, Math.min(numPreview, node.numTokens))],
  };
}
