import { describe, expect, test } from 'vitest';
import { maxTokensOf } from './cache-capacity.ts';
import { checkRadixTree } from './check-radix-tree.ts';
import { createImageKeys } from './image-keys.ts';
import type { PageMemory } from './page-memory.ts';
import { type CachedPage, createNode, type RadixNode } from './radix-node.ts';
import type { KvPage, PagePool } from './types.ts';
import { createUnifiedPool } from './unified-pool.ts';

const PAGE_TOKENS = 2;
let numCreated = 0;

/** A node with these tokens, pages and children. */
function plant(tokens: number[], children: RadixNode[] = [], more: Partial<CachedPage>[] = []): RadixNode {
  const node = createNode(null);
  node.tokens = Int32Array.from(tokens);
  node.numTokens = tokens.length;
  node.pages = Array.from({ length: Math.ceil(tokens.length / PAGE_TOKENS) }, (_, i) => ({
    page: { tier: 'float', index: numCreated++, numRefs: 1 },
    numUses: 5,
    numForks: 5,
    isContinued: false,
    lastUse: 5,
    isSession: false,
    ...more[i],
  }));
  node.children = children;
  for (const child of children) child.parent = node;
  return node;
}

function nodesOf(root: RadixNode): RadixNode[] {
  return root.children.flatMap((child) => [child, ...nodesOf(child)]);
}

/** Checks the tree after a change. */
function check(create: () => RadixNode[], change: (root: RadixNode) => void = () => {}, more: object = {}) {
  const root = createNode(null);
  root.children = create();
  for (const child of root.children) child.parent = root;
  const nodes = nodesOf(root);
  const numPages = nodes.reduce((sum, { pages }) => sum + pages.length, 0);
  change(root);
  return (): void =>
    checkRadixTree(new Map([['a', root]]), {
      pageTokens: PAGE_TOKENS,
      numPages,
      numNodes: nodes.length,
      now: 5,
      ...more,
    });
}

describe('[RT1][RT2][RT3] the check of a tree', () => {
  const fork = (): RadixNode[] => [plant([1, 1, 2, 2], [plant([3, 3]), plant([3, 4, 5])]), plant([1, 2])];

  test('accepts what follows the rules', () => {
    expect(check(fork)).not.toThrow();
    expect(check(() => [plant([1]), plant([2, 1]), plant([2, 2, 3])])).not.toThrow();
    const falling = (lastUse: number): Partial<CachedPage> => ({ lastUse, numUses: lastUse, numForks: lastUse });
    expect(check(() => [plant([1, 1, 2, 2], [], [falling(5), falling(4)])])).not.toThrow();
    expect(check(() => [plant([1, 1, 2, 2], [], [{ isSession: true }, { isSession: true }])])).not.toThrow();
    expect(check(() => [plant([1, 1, 2, 2], [], [{ isSession: true }, {}])])).not.toThrow();
  });

  test.each<[what: string, create: () => RadixNode[], change: (root: RadixNode) => void, message: string]>([
    ['an empty root', () => [], () => {}, 'a namespace has no pages'],
    [
      'a root with a parent',
      fork,
      (root) => (root.parent = createNode(null)),
      'the root of a prefix tree has a parent or pages',
    ],
    [
      'a root with pages',
      fork,
      (root) => root.pages.push(root.children[0]!.pages[0]!),
      'the root of a prefix tree has a parent or pages',
    ],
    [
      'a node without pages',
      () => [plant([1, 2])],
      ({ children: [child] }) => Object.assign(child!, { pages: [], numTokens: 0 }),
      'a node of the prefix tree has no pages',
    ],
    ['too many tokens', fork, (root) => (root.children[1]!.numTokens = 3), 'a node has 3 tokens in 1 pages of 2'],
    ['too few tokens', fork, (root) => (root.children[0]!.numTokens = 2), 'a node has 2 tokens in 2 pages of 2'],
    ['no capacity', fork, (root) => (root.children[0]!.tokens = new Int32Array(3)), 'and capacity for 3'],
    [
      'children behind half a page',
      fork,
      (root) => (root.children[0]!.numTokens = 3),
      'a node with children ends in a partly filled page',
    ],
    [
      'a page used after its predecessor',
      fork,
      (root) => (root.children[0]!.pages[0]!.lastUse = 4),
      'a page was used at 5, later than its predecessor',
    ],
    ['a page used after now', fork, (root) => (root.children[1]!.pages[0]!.lastUse = 6), 'a page was used at 6'],
    [
      'more uses',
      fork,
      (root) => (root.children[0]!.pages[1]!.numUses = 4),
      'a page has 5 uses, more than its predecessor',
    ],
    [
      'more forks',
      fork,
      (root) => (root.children[0]!.pages[0]!.numForks = 4),
      'a page has 5 forks, more than its predecessor',
    ],
    [
      'a session behind an ordinary page',
      fork,
      (root) => (root.children[0]!.pages[1]!.isSession = true),
      "a session's page follows an ordinary page",
    ],
    [
      'the wrong parent',
      fork,
      (root) => (root.children[0]!.children[1]!.parent = root),
      'a node of the prefix tree has the wrong parent',
    ],
    [
      'a page twice',
      fork,
      (root) => (root.children[1]!.pages[0]!.page = root.children[0]!.pages[0]!.page),
      'is in the prefix tree twice',
    ],
    [
      'a free page',
      fork,
      (root) => (root.children[1]!.pages[0]!.page = { tier: 'float', index: 7, numRefs: 0 }),
      'page 7 (float) is in the prefix tree but free',
    ],
    ['siblings out of order', () => [plant([2, 1]), plant([1, 9])], () => {}, 'siblings out of order: 2, 1'],
    [
      'siblings out of order in the second token',
      () => [plant([1, 3]), plant([1, 2])],
      () => {},
      'siblings out of order: 3, 2',
    ],
    [
      'equal siblings',
      () => [plant([1, 2]), plant([1, 2])],
      () => {},
      'a node is a prefix of its sibling: 2 equal tokens',
    ],
    [
      'a sibling that begins another',
      () => [plant([1]), plant([1, 2])],
      () => {},
      'a node is a prefix of its sibling: 1 equal tokens',
    ],
  ])('finds %s', (_, create, change, message) => {
    expect(check(create, change)).toThrow(message);
  });

  test('finds wrong counts', () => {
    expect(check(fork, () => {}, { numPages: 5 })).toThrow('6 pages in the prefix tree, counted 5');
    expect(check(fork, () => {}, { numNodes: 5 })).toThrow('4 nodes in the prefix tree, counted 5');
  });
});

describe('[UP1] the check of a pool', () => {
  const open = () => {
    const pool = createUnifiedPool({ numPages: 10, pageBytes: 64, packed: { pageBytes: 36, unitBytes: 4 }, slabPages: 4, copyPage() {} }); // prettier-ignore
    const pages = pool.allocate('float', 6) as (KvPage & { tier: string; index: number; numRefs: number })[];
    return { pool, pages };
  };

  test('counts references of owners and tickets', () => {
    const { pool, pages } = open();
    pool.checkIntegrity([pages.slice(0, 3), pages.slice(3)]);
    expect(() => pool.checkIntegrity([pages.slice(1)])).toThrow('references to float page 0: 1 recorded, 0 counted');
    expect(() => pool.checkIntegrity([pages, pages.slice(5)])).toThrow('references to float page 5: 1 recorded, 2 counted'); // prettier-ignore
    expect(() => pool.checkIntegrity([pages, [{ tier: 'float', index: 0, numRefs: 1 }]])).toThrow('has an owner and 1 references, but no slot'); // prettier-ignore
    const ticket = pool.beginPack(pages.slice(0, 2))!;
    pool.checkIntegrity([pages]);
    pool.cancelPack(ticket);
    pool.checkIntegrity([pages]);
    const other = pool.beginPack(pages.slice(0, 2))!;
    pool.finishPack(other);
    pool.checkIntegrity([pages]);
    const reservation = createUnifiedPool({ numPages: 8, pageBytes: 64, packed: null, slabPages: 4, copyPage() {} });
    reservation.reserve(64);
    reservation.checkIntegrity([]);
  });

  test('finds pages that are not where they say', () => {
    for (const change of [{ index: 1 }, { tier: 'packed' }]) {
      const { pool, pages } = open();
      Object.assign(pages[0]!, change);
      expect(() => pool.checkIntegrity([pages])).toThrow(expect.objectContaining({ code: 'internal' }));
    }
    for (const change of [{ index: 3 }, { tier: 'packed' }]) {
      const { pool, pages } = open();
      pool.beginPack(pages.slice(0, 2));
      Object.assign(pages[0]!, change);
      expect(() => pool.checkIntegrity([pages])).toThrow(expect.objectContaining({ code: 'internal' }));
    }
  });
});

test('[KC13] the longest sequence: all but a tail packed, or the float pages of all slabs but one', () => {
  const longest = (numSlabs: number, { isPacked = true, tailTokens = 0, numReserved = 0 } = {}): number => {
    const memory = { pageTokens: 4, packed: isPacked ? {} : null } as PageMemory;
    const pool = { numSlabs, slabPages: { float: 8, packed: 20 } } as unknown as PagePool;
    return maxTokensOf({ memory, numPages: 8 * numSlabs + 3, maxBatchTokens: 32 }, pool, tailTokens, numReserved);
  };
  // A group of 64 tokens, a step of 32 and one page more: 25 pages in 4 slabs.
  expect([longest(10), longest(10, { tailTokens: 28 }), longest(10, { tailTokens: 29 })]).toEqual([480, 480, 400]);
  expect([longest(10, { numReserved: 2 }), longest(4), longest(5)]).toEqual([320, 96, 128]);
  expect([longest(2), longest(1), longest(1, { numReserved: 1 })]).toEqual([32, 44, 12]);
  expect([longest(10, { isPacked: false }), longest(10, { isPacked: false, numReserved: 2 })]).toEqual([332, 268]);
});

test('[KC19] tokens beside images keep their numbers, 0 too', () => {
  const images = createImageKeys();
  const key = images.keyOf('ab'.repeat(32));
  const spelled = Array.from(images.spell([0, key, 7])!);
  expect([spelled.length, spelled[0], spelled.at(-1)]).toEqual([11, 0, 7]);
  const tokens = [0, 5];
  expect(images.spell(tokens)).toBe(tokens);
});
