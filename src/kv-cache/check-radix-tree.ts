import { assert } from '../core/errors.ts';
import { nodesBelow, pageSize, type RadixNode } from './radix-node.ts';
import type { KvPage } from './types.ts';

export interface RadixTreeCounts {
  readonly pageTokens: number;
  readonly numPages: number;
  readonly numNodes: number;
  readonly now: number;
}

/** Throws `internal` if a tree breaks RT1 to RT3 of SPEC.md or the counts differ. */
export function checkRadixTree(roots: ReadonlyMap<string, RadixNode>, counts: RadixTreeCounts): void {
  const { pageTokens } = counts;
  const seen = new Set<KvPage>();
  let numNodes = 0;
  for (const root of roots.values()) {
    assert(root.parent === null && root.pages.length === 0, 'the root of a prefix tree has a parent or pages');
    assert(root.children.length > 0, 'a namespace has no pages');
    checkChildren(root, pageTokens);
    for (const node of nodesBelow(root)) {
      numNodes++;
      checkNode(node, counts);
      checkChildren(node, pageTokens);
      for (const { page } of node.pages) {
        assert(!seen.has(page), `page ${page.index} (${page.tier}) is in the prefix tree twice`);
        assert(page.numRefs >= 1, `page ${page.index} (${page.tier}) is in the prefix tree but free`);
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
    `a node has ${numTokens} tokens in ${pages.length} pages of ${pageTokens}, and capacity for ${tokens.length}`,
  );
  assert(children.length === 0 || numTokens % pageTokens === 0, `a node with children ends in a partly filled page`);
  let before = node.parent!.pages.at(-1);
  for (const cached of pages) {
    assert(
      cached.lastUse <= (before?.lastUse ?? now),
      `a page was used at ${cached.lastUse}, later than its predecessor`,
    );
    assert(
      cached.numUses <= (before?.numUses ?? Infinity),
      `a page has ${cached.numUses} uses, more than its predecessor`,
    );
    assert(
      cached.numForks <= (before?.numForks ?? Infinity),
      `a page has ${cached.numForks} forks, more than its predecessor`,
    );
    assert(!cached.isSession || before?.isSession !== false, `a session's page follows an ordinary page`);
    before = cached;
  }
}

function checkChildren(node: RadixNode, pageTokens: number): void {
  let before: RadixNode | null = null;
  for (const child of node.children) {
    assert(child.parent === node, 'a node of the prefix tree has the wrong parent');
    if (before !== null) {
      const size = Math.min(pageSize(before, 0, pageTokens), pageSize(child, 0, pageTokens));
      let i = 0;
      while (i < size && before.tokens[i] === child.tokens[i]) i++;
      assert(i < size, `a node is a prefix of its sibling: ${size} equal tokens`);
      assert(before.tokens[i]! < child.tokens[i]!, `siblings out of order: ${before.tokens[i]}, ${child.tokens[i]}`);
    }
    before = child;
  }
}
