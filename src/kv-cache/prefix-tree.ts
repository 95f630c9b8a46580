import { assert, RuvLLMError } from '../core/errors.ts';
import { checkRadixTree } from './check-radix-tree.ts';
import { describePrefixes } from './describe-prefixes.ts';
import { evictablePages, evictLeaves, type Spared } from './evict-leaves.ts';
import { compareRanks, rankPage, SESSION_CALLS, valueByRecency, type PageValue } from './leaf-order.ts';
import { createOwnerFloors, type OwnerOf } from './owner-floors.ts';
import {
  addChild,
  appendTokens,
  createNode,
  locate,
  nodesBelow,
  pageSize,
  placeOf,
  split,
  truncate,
  type CachedPage,
  type Location,
  type RadixNode,
} from './radix-node.ts';
import type { KvPage, PrefixTree, Retention } from './types.ts';

export interface PrefixTreeOptions {
  readonly pageTokens: number;
  /** Adds and removes the tree's own reference to a page. */
  readonly retain: (page: KvPage) => void;
  readonly release: (page: KvPage) => void;
  /** Pages of the highest value are evicted last; default `valueByRecency`. */
  readonly value?: PageValue;
  /** Calls after which an unused session counts as ordinary; default `SESSION_CALLS`. */
  readonly sessionCalls?: number;
  /** Whose floor a namespace counts towards; default: no floors. */
  readonly ownerOf?: OwnerOf;
}

export function createPrefixTree(options: PrefixTreeOptions): PrefixTree {
  const { pageTokens, retain, release, value = valueByRecency, sessionCalls = SESSION_CALLS, ownerOf } = options;
  if (!Number.isSafeInteger(pageTokens) || pageTokens < 1) {
    throw new RuvLLMError('invalid_option', `a page must hold at least 1 token, got ${pageTokens}`);
  }
  const roots = new Map<string, RadixNode>();
  let numPages = 0;
  let numNodes = 0;
  // Counts calls of `touch` and `insert`: without a clock, recency is deterministic.
  let now = 0;
  // During an eviction the tree contains empty nodes, which a search cannot handle.
  let isEvicting = false;

  function locateIn(root: RadixNode, tokens: ArrayLike<number>, numTokens: number): Location {
    assert(!isEvicting, 'a callback used the prefix tree during an eviction');
    assert(
      Number.isSafeInteger(numTokens) && numTokens >= 0 && numTokens <= tokens.length,
      `${numTokens} tokens of a sequence of ${tokens.length}`,
    );
    return locate(root, tokens, numTokens, pageTokens);
  }

  function add(node: RadixNode, pages: readonly KvPage[], isSession: boolean): void {
    const before = node.pages.at(-1) ?? node.parent!.pages.at(-1);
    if (before !== undefined) before.isContinued = true;
    for (const page of pages)
      node.pages.push({ page, numUses: 0, numForks: 0, isContinued: true, lastUse: now, isSession });
    node.pages.at(-1)!.isContinued = false;
    numPages += pages.length;
  }

  /** The node after which diverging pages are inserted. */
  function branchAt(node: RadixNode, numWhole: number): RadixNode {
    if (numWhole === node.pages.length) return node;
    if (numWhole === 0) return node.parent!;
    numNodes++;
    return split(node, numWhole, pageTokens);
  }

  const spare = (retention: Retention): Spared => ({ retention, sessionSince: now - sessionCalls });

  return {
    get numPages() {
      return numPages;
    },
    get numNodes() {
      return numNodes;
    },
    match(namespace, tokens) {
      const root = roots.get(namespace);
      if (root === undefined) return { pages: [], partial: null };
      const location = locateIn(root, tokens, tokens.length);
      const { whole, partial } = pagesAt(location);
      return {
        pages: whole.map(({ page }) => page),
        partial: partial === null ? null : { page: partial.page, numTokens: location.numPartial },
      };
    },
    touch(namespace, tokens, numTokens) {
      now++;
      const root = roots.get(namespace);
      if (root === undefined) return;
      const { whole, partial } = pagesAt(locateIn(root, tokens, numTokens));
      for (const cached of partial === null ? whole : [...whole, partial]) {
        cached.numUses++;
        cached.lastUse = now;
      }
    },
    insert(namespace, tokens, numTokens, pages, retention) {
      assert(
        pages.length === Math.ceil(numTokens / pageTokens),
        `${pages.length} pages of ${pageTokens} tokens for ${numTokens} tokens`,
      );
      const root = roots.get(namespace) ?? createNode(null);
      const location = locateIn(root, tokens, numTokens);
      if (numTokens === 0) return [];
      roots.set(namespace, root);
      now++;
      const isSession = retention === 'session';
      const { whole, partial } = pagesAt(location);
      for (const cached of whole) use(cached, now, isSession);
      const cachedPages = whole.map(({ page }) => page);
      const newPages = pages.slice(cachedPages.length);
      if (newPages.length === 0) return cachedPages;

      const { numWhole, numPartial } = location;
      const node = location.path.at(-1)!;
      const from = cachedPages.length * pageTokens;
      const numKnown = partial === null ? 0 : pageSize(node, numWhole, pageTokens);
      if (partial !== null && numPartial === numTokens - from) {
        use(partial, now, isSession);
        // A page with more tokens is a different page to a sequence that continues after these tokens.
        return [...cachedPages, numKnown === numPartial ? partial.page : newPages[0]!];
      }
      // Before any release: the caller may have continued in the very page that is superseded.
      for (const page of newPages) retain(page);
      if (partial !== null && numPartial === numKnown) {
        truncate(node, numWhole, pageTokens);
        numPages--;
        appendTokens(node, tokens, from, numTokens);
        add(node, newPages, isSession);
        const successor = node.pages[numWhole]!;
        successor.numUses = partial.numUses;
        successor.isSession ||= partial.isSession;
        release(partial.page);
        return [...cachedPages, ...newPages];
      }
      if (whole.at(-1)?.isContinued === true) for (const cached of whole) cached.numForks++;
      let branch = branchAt(node, numWhole);
      if (branch === root || branch.children.length > 0) {
        branch = addChild(branch, tokens, from, numTokens, pageTokens);
        numNodes++;
      } else {
        appendTokens(branch, tokens, from, numTokens);
      }
      add(branch, newPages, isSession);
      return [...cachedPages, ...newPages];
    },
    numIdlePages(retention = 'session') {
      let count = 0;
      for (const root of roots.values())
        for (const { numLast } of evictablePages(root, spare(retention))) count += numLast;
      return count;
    },
    evict({ retention, keepsFloors = false, isEnough, onEvict }) {
      assert(!isEvicting, 'a callback used the prefix tree during an eviction');
      isEvicting = true;
      try {
        return evictLeaves(roots, {
          ...spare(retention),
          pageTokens,
          isEnough,
          value,
          now,
          floors: keepsFloors && ownerOf !== undefined ? createOwnerFloors(roots, ownerOf, { numPages, now }) : null,
          onPage(namespace, node) {
            const { page } = node.pages.at(-1)!;
            onEvict?.(page, placeOf(namespace, node, node.pages.length - 1, pageTokens));
            truncate(node, node.pages.length - 1, pageTokens);
            numPages--;
            if (node.pages.length === 0) numNodes--;
            release(page);
          },
        });
      } finally {
        isEvicting = false;
      }
    },
    *idlePages() {
      const idle = [...roots].flatMap(([namespace, root]) =>
        [...evictablePages(root, spare('session'))].flatMap(({ node, numLast }) =>
          node.pages.slice(node.pages.length - numLast).map((cached, i) => {
            const index = node.pages.length - numLast + i;
            const rank = rankPage(cached, value(cached, pageSize(node, index, pageTokens), now), now - sessionCalls);
            return { namespace, node, index, rank };
          }),
        ),
      );
      // The sort is stable and parents come first: equal pages are also in the reverse order of eviction.
      idle.sort((a, b) => compareRanks(b.rank, a.rank));
      for (const { namespace, node, index } of idle) {
        yield { page: node.pages[index]!.page, place: placeOf(namespace, node, index, pageTokens) };
      }
    },
    describe: (query) => describePrefixes(roots, now, query),
    *sessionPages() {
      // A session's page follows only session pages: after the first other page there are none.
      const waiting = [...roots.values()].flatMap(({ children }) => children);
      for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
        for (const { page, isSession } of node.pages) {
          if (!isSession) break;
          yield page;
        }
        if (node.pages.at(-1)!.isSession) waiting.push(...node.children);
      }
    },
    drop(namespace) {
      assert(!isEvicting, 'a callback used the prefix tree during an eviction');
      const root = roots.get(namespace);
      if (root === undefined) return;
      roots.delete(namespace);
      for (const node of nodesBelow(root)) {
        numNodes--;
        numPages -= node.pages.length;
        for (const { page } of node.pages) release(page);
      }
    },
    namespaces: () => [...roots.keys()],
    *owners() {
      for (const root of roots.values()) {
        yield [...nodesBelow(root)].flatMap((node) => node.pages.map(({ page }) => page));
      }
    },
    checkIntegrity() {
      checkRadixTree(roots, { pageTokens, numPages, numNodes, now });
    },
  };
}

/** The pages of a location, and the partially matching page after them. */
function pagesAt({ path, numWhole, numPartial }: Location): { whole: CachedPage[]; partial: CachedPage | null } {
  const whole: CachedPage[] = [];
  const last = path.at(-1)!;
  for (const node of path) {
    const count = node === last ? numWhole : node.pages.length;
    for (let i = 0; i < count; i++) whole.push(node.pages[i]!);
  }
  return { whole, partial: numPartial > 0 ? last.pages[numWhole]! : null };
}

function use(cached: CachedPage, now: number, isSession: boolean): void {
  cached.lastUse = now;
  cached.isSession ||= isSession;
}
