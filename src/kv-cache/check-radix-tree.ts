import { assert } from '../core/errors.ts';
import { nodesBelow, pageSize, type RadixNode } from './radix-node.ts';
import type { KvPage } from './types.ts';

export interface RadixTreeCounts {
  readonly pageTokens: number;
  readonly numPages: number;
  readonly numNodes: number;
  readonly now: number;
}

/** Throws `internal` where trees break a rule: RT1 to RT3 of SPEC.md, or the counts differ. */
export function checkRadixTree(roots: ReadonlyMap<string, RadixNode>, counts: RadixTreeCounts): void {
  const { pageTokens } = counts;
  const seen = new Set<KvPage>();
  let numNodes = 0;
  for (const root of roots.values()) {
    assert(root.parent === null && root.pages.length === 0, 'the root of a prefix tree has a parent or pages');
    assert(root.children.length > 0, 'a namespace without pages is kept');
    checkChildren(root, pageTokens);
    for (const node of nodesBelow(root)) {
      numNodes++;
      checkNode(node, counts);
      checkChildren(node, pageTokens);
      for (const { page } of node.pages) {
        assert(!seen.has(page), `page ${page.index} (${page.tier}) is twice in the prefix tree`);
        assert(page.numRefs >= 1, `page ${page.index} (${page.tier}) is in the prefix tree and free`);
        seen.add(page);
      }
    }
  }
  assert(seen.size === counts.numPages, `${seen.size} pages in the prefix tree, counted ${counts.numPages}`);
  assert(numNodes === counts.numNodes, `${numNodes} nodes in the prefix tree, counted ${counts.numNodes}`);
}

function checkNode(node: RadixNode, { pageTokens, now }: RadixTreeCounts): void {
  const { numTokens, tokens, pages, children } = node;
  assert(pages.length > 0, 'a node of the prefix tree has no pages');
  assert(
    Math.ceil(numTokens / pageTokens) === pages.length && numTokens <= tokens.length,
    `a node has ${numTokens} tokens in ${pages.length} pages of ${pageTokens}, and room for ${tokens.length}`,
  );
  assert(children.length === 0 || numTokens % pageTokens === 0, `a node with children ends in a partly filled page`);
  let before = node.parent!.pages.at(-1);
  for (const cached of pages) {
    assert(cached.lastUse <= (before?.lastUse ?? now), `a page was used at ${cached.lastUse}, after the one before it`);
    assert(
      cached.numUses <= (before?.numUses ?? Infinity),
      `a page has ${cached.numUses} uses, the one before it less`,
    );
    assert(!cached.isSession || before?.isSession !== false, `a page of a session stands on an ordinary one`);
    before = cached;
  }
}

function checkChildren(node: RadixNode, pageTokens: number): void {
  let before: RadixNode | null = null;
  for (const child of node.children) {
    assert(child.parent === node, 'a node of the prefix tree does not know its parent');
    if (before !== null) {
      const size = Math.min(pageSize(before, 0, pageTokens), pageSize(child, 0, pageTokens));
      let i = 0;
      while (i < size && before.tokens[i] === child.tokens[i]) i++;
      assert(i < size, `one of two siblings is the beginning of the other: ${size} equal tokens`);
      assert(before.tokens[i]! < child.tokens[i]!, `siblings out of order: ${before.tokens[i]}, ${child.tokens[i]}`);
    }
    before = child;
  }
}
