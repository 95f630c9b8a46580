import type { KvPage, TreePlace } from './types.ts';

/** A page in the tree, with the inputs of its value. */
export interface CachedPage {
  page: KvPage;
  /** Number of `touch` calls that reached it. */
  numUses: number;
  /** Number of sequences that left its continuation for another: how often the prefix up to here was shared. */
  numForks: number;
  /** Whether a page was ever inserted after it. */
  isContinued: boolean;
  /** The tree's clock at the last touch or insert; never grows along a path from the root. */
  lastUse: number;
  /** Never grows along a path: a session's page follows only session pages. */
  isSession: boolean;
}

/** A run of pages without a branch; only the root is empty, and only a leaf can end in a partly filled page. */
export interface RadixNode {
  parent: RadixNode | null;
  /** Tokens of the pages; longer than `numTokens`, so that a growing conversation is not copied per page. */
  tokens: Int32Array;
  numTokens: number;
  pages: CachedPage[];
  /** Sorted by the tokens of their first page; no first page is a prefix of a sibling's. */
  children: RadixNode[];
}

/** How far a token sequence matches. */
export interface Location {
  /** From the root; all but the last match fully. */
  readonly path: readonly RadixNode[];
  /** Fully matching pages of the last node. */
  readonly numWhole: number;
  /** Matching tokens of the next page of the last node, fewer than a page. */
  readonly numPartial: number;
}

const NO_TOKENS = new Int32Array(0);

export function createNode(parent: RadixNode | null): RadixNode {
  return { parent, tokens: NO_TOKENS, numTokens: 0, pages: [], children: [] };
}

/** Number of equal tokens, starting the comparison at `from`. */
function sharedTokens(node: RadixNode, sequence: ArrayLike<number>, offset: number, from: number, end: number): number {
  const { tokens } = node;
  let i = from;
  while (i < end && tokens[i] === sequence[offset + i]) i++;
  return i;
}

/** The first child that is not ordered before `sequence[offset, offset + length)`. */
function lowerBound(
  children: readonly RadixNode[],
  sequence: ArrayLike<number>,
  offset: number,
  length: number,
): number {
  let low = 0;
  let high = children.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const child = children[middle]!;
    const end = Math.min(length, child.numTokens);
    const shared = sharedTokens(child, sequence, offset, 0, end);
    // A child that ends first is a prefix of the sequence, so ordered before it.
    const isBefore = shared === end ? child.numTokens < length : child.tokens[shared]! < sequence[offset + shared]!;
    if (isBefore) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Where the first `numTokens` tokens diverge from the tree below `root`. Of pages sharing equally many tokens it is the first in
 * order, whatever follows, so `match` of a prompt and `touch` of its match find the same page.
 */
export function locate(root: RadixNode, sequence: ArrayLike<number>, numTokens: number, pageTokens: number): Location {
  const path = [root];
  let offset = 0;
  for (let node = root; ; node = path.at(-1)!) {
    const { children } = node;
    const length = Math.min(pageTokens, numTokens - offset);
    const shareOf = (child: RadixNode | undefined): number =>
      child === undefined ? 0 : sharedTokens(child, sequence, offset, 0, Math.min(length, child.numTokens));
    let index = length === 0 ? children.length : lowerBound(children, sequence, offset, length);
    let shared = shareOf(children[index]);
    // Sorted, so the longest match is next to the insertion point.
    const sharedBefore = length === 0 ? 0 : shareOf(children[index - 1]);
    if (sharedBefore >= shared && sharedBefore > 0) {
      shared = sharedBefore;
      index = lowerBound(children, sequence, offset, shared);
    }
    if (shared === 0) return { path, numWhole: node.pages.length, numPartial: 0 };
    const child = children[index]!;
    shared = sharedTokens(child, sequence, offset, shared, Math.min(child.numTokens, numTokens - offset));
    path.push(child);
    const numWhole = Math.floor(shared / pageTokens);
    if (numWhole < child.pages.length) return { path, numWhole, numPartial: shared - numWhole * pageTokens };
    offset += shared;
  }
}

/** Appends the tokens of further pages; the caller adds the pages. */
export function appendTokens(node: RadixNode, sequence: ArrayLike<number>, from: number, to: number): void {
  const numTokens = node.numTokens + to - from;
  if (numTokens > node.tokens.length) {
    // A new edge is mostly final; one that has grown before is a conversation and grows again.
    const grown = new Int32Array(node.numTokens === 0 ? numTokens : Math.max(numTokens, node.numTokens * 2));
    grown.set(node.tokens.subarray(0, node.numTokens));
    node.tokens = grown;
  }
  for (let i = from; i < to; i++) node.tokens[node.numTokens + i - from] = sequence[i]!;
  node.numTokens = numTokens;
}

/** Removes the pages from `numKept` on. */
export function truncate(node: RadixNode, numKept: number, pageTokens: number): void {
  node.pages.length = numKept;
  node.numTokens = numKept * pageTokens;
  if (node.tokens.length >= 4 * node.numTokens) node.tokens = node.tokens.slice(0, node.numTokens);
}

/** Inserts a node with the first `numPages` pages of `node` above it, and returns it. */
export function split(node: RadixNode, numPages: number, pageTokens: number): RadixNode {
  const siblings = node.parent!.children;
  const at = lowerBound(siblings, node.tokens, 0, Math.min(pageTokens, node.numTokens));
  const upper = createNode(node.parent);
  upper.pages = node.pages.splice(0, numPages);
  upper.numTokens = numPages * pageTokens;
  upper.tokens = node.tokens.slice(0, upper.numTokens);
  upper.children = [node];
  siblings[at] = upper;
  node.tokens = node.tokens.slice(upper.numTokens, node.numTokens);
  node.numTokens = node.tokens.length;
  node.parent = upper;
  return upper;
}

/** Creates a child for `sequence[from, to)`, without pages yet. */
export function addChild(
  parent: RadixNode,
  sequence: ArrayLike<number>,
  from: number,
  to: number,
  pageTokens: number,
): RadixNode {
  const child = createNode(parent);
  appendTokens(child, sequence, from, to);
  parent.children.splice(lowerBound(parent.children, sequence, from, Math.min(pageTokens, to - from)), 0, child);
  return child;
}

/** All nodes below `root`, parents first; without recursion, because a conversation may have a node per turn. */
export function* nodesBelow(root: RadixNode): Generator<RadixNode> {
  const waiting = [...root.children];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    yield node;
    for (const child of node.children) waiting.push(child);
  }
}

/** Tokens in the page at `index`. */
export function pageSize(node: RadixNode, index: number, pageTokens: number): number {
  return Math.min(pageTokens, node.numTokens - index * pageTokens);
}

/** Describes the page at `index`; valid until the tree changes. */
export function placeOf(namespace: string, node: RadixNode, index: number, pageTokens: number): TreePlace {
  const from = index * pageTokens;
  return {
    namespace,
    tokens: node.tokens.slice(from, from + pageSize(node, index, pageTokens)),
    numUses: node.pages[index]!.numUses,
    parent() {
      const before = index > 0 ? node : node.parent!;
      const last = (index > 0 ? index : before.pages.length) - 1;
      return last < 0 ? null : { page: before.pages[last]!.page, place: placeOf(namespace, before, last, pageTokens) };
    },
  };
}
