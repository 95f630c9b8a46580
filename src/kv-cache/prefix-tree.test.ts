import { expect, test } from 'vitest';
import { createFakeTree, pageIndexes, type FakePages } from './fake-pages.contract.ts';
import { valueByForks, type PageValue } from './leaf-order.ts';
import { createPrefixTree } from './prefix-tree.ts';
import type { KvPage, PrefixTree, Retention } from './types.ts';

/** Inserts new pages and releases them, like a sequence that ends; returns the result of `insert`. */
function insertText(
  { tree, pool }: { tree: PrefixTree; pool: FakePages },
  tokens: readonly number[],
  { namespace = 'a', retention = 'ordinary' as Retention } = {},
): readonly KvPage[] {
  const pages = pool.create(Math.ceil(tokens.length / 4));
  const result = tree.insert(namespace, tokens, tokens.length, pages, retention);
  for (const page of pages) pool.release(page);
  tree.checkIntegrity();
  return result;
}

function matchOf(tree: PrefixTree, tokens: readonly number[], namespace = 'a') {
  const { pages, partial } = tree.match(namespace, tokens);
  return { pages: pageIndexes(pages), partial: partial && [partial.page.index, partial.numTokens] };
}

function evicted(tree: PrefixTree, count = Infinity, retention: Retention = 'session'): number[] {
  const pages: number[] = [];
  tree.evict({ retention, isEnough: () => pages.length >= count, onEvict: (page) => pages.push(page.index) });
  tree.checkIntegrity();
  return pages;
}

test('[RT4] matches whole pages, then the page sharing the most of the remaining tokens', () => {
  const fake = createFakeTree(4);
  insertText(fake, [1, 2, 3, 4, 5, 6, 7, 8]); // 0, 1
  insertText(fake, [1, 2, 3, 4, 5, 6, 9, 9]); // 3 after 0; the second pages share a prefix
  insertText(fake, [1, 2, 3, 4, 5, 7, 0, 0]); // 5
  insertText(fake, [1, 2, 3, 4, 6, 0]); // 7, partly filled
  expect(fake.tree.numPages).toBe(5);
  expect(fake.tree.numNodes).toBe(5);
  const begin = [1, 2, 3, 4];
  expect(matchOf(fake.tree, [...begin, 5, 6, 7, 8, 9])).toEqual({ pages: [0, 1], partial: null });
  expect(matchOf(fake.tree, [...begin, 5, 6, 7, 9])).toEqual({ pages: [0], partial: [1, 3] });
  expect(matchOf(fake.tree, [...begin, 5, 6, 8, 8])).toEqual({ pages: [0], partial: [1, 2] }); // 1 and 3 share equally much
  expect(matchOf(fake.tree, [...begin, 5, 6, 9, 8])).toEqual({ pages: [0], partial: [3, 3] });
  expect(matchOf(fake.tree, [...begin, 5, 7, 1, 1])).toEqual({ pages: [0], partial: [5, 2] });
  expect(matchOf(fake.tree, [...begin, 5, 8, 1, 1])).toEqual({ pages: [0], partial: [1, 1] });
  expect(matchOf(fake.tree, [...begin, 6, 0, 1, 1])).toEqual({ pages: [0], partial: [7, 2] });
  expect(matchOf(fake.tree, [...begin, 6])).toEqual({ pages: [0], partial: [7, 1] });
  expect(matchOf(fake.tree, [...begin, 7])).toEqual({ pages: [0], partial: null });
  expect(matchOf(fake.tree, [1, 2, 4])).toEqual({ pages: [], partial: [0, 2] });
  expect(matchOf(fake.tree, [2])).toEqual({ pages: [], partial: null });
  expect(matchOf(fake.tree, [])).toEqual({ pages: [], partial: null });
});

test('[RT4] matches a prompt that diverges inside a page of a run', () => {
  const fake = createFakeTree(4);
  insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
  expect(fake.tree.numNodes).toBe(1);
  expect(matchOf(fake.tree, [1, 1, 1, 1, 2, 2, 0])).toEqual({ pages: [0], partial: [1, 2] });
  expect(matchOf(fake.tree, [1, 1, 1, 1, 2, 2, 2, 2, 3])).toEqual({ pages: [0, 1], partial: [2, 1] });
});

test('[RT1][RT5] splits a run at the page boundary before the divergence and keeps references', () => {
  const fake = createFakeTree(4);
  const first = insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
  const second = insertText(fake, [1, 1, 1, 1, 2, 2, 2, 0]);
  expect(pageIndexes(second)).toEqual([0, 4]);
  expect(fake.tree.numNodes).toBe(3);
  expect([...first, ...second].map(({ numRefs }) => numRefs)).toEqual([1, 1, 1, 1, 1]);
  expect(matchOf(fake.tree, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3])).toEqual({ pages: [0, 1, 2], partial: null });
});

test('[RT1] a conversation that grows page by page stays one node', () => {
  const fake = createFakeTree(4);
  for (let length = 1; length <= 40; length++) {
    insertText(
      fake,
      Array.from({ length }, (_, i) => i),
    );
  }
  expect([fake.tree.numPages, fake.tree.numNodes]).toEqual([10, 1]);
});

test('[RT6] returns the existing page for equal tokens, but not for a partial match', () => {
  const fake = createFakeTree(4);
  insertText(fake, [1, 2, 3, 4, 5, 6]); // 0, 1
  expect(pageIndexes(insertText(fake, [1, 2, 3, 4, 5, 6]))).toEqual([0, 1]);
  expect(pageIndexes(insertText(fake, [1, 2, 3, 4, 5]))).toEqual([0, 5]);
  expect(pageIndexes(insertText(fake, [1, 2]))).toEqual([6]);
  expect(fake.tree.numPages).toBe(2);
});

test('[RT7] a longer page supersedes its shorter version, even in the same page object', () => {
  const fake = createFakeTree(4);
  const [old] = insertText(fake, [1, 2], { retention: 'session' });
  fake.tree.touch('a', [1, 2], 2);
  const [next] = fake.pool.create(1);
  expect(fake.tree.insert('a', [1, 2, 3], 3, [next!], 'ordinary')).toEqual([next]);
  expect([old!.numRefs, next!.numRefs]).toEqual([0, 2]);
  const behind = fake.pool.create(1);
  fake.tree.insert('a', [1, 2, 3, 4, 5], 5, [next!, ...behind], 'ordinary');
  expect([next!.numRefs, behind[0]!.numRefs]).toEqual([2, 2]);
  fake.tree.checkIntegrity();
  for (const page of [next!, ...behind]) fake.pool.release(page);
  expect(evicted(fake.tree, Infinity, 'ordinary')).toEqual([2]);
  const [{ place } = { place: null }] = fake.tree.idlePages();
  expect(place).toMatchObject({ namespace: 'a', tokens: Int32Array.of(1, 2, 3, 4), numUses: 1 });
});

test('[RT8][RT9] keeps pages in use and sessions; evicts ordinary ones from the end', () => {
  const fake = createFakeTree(4);
  const [first] = insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]); // 0, 1, 2
  insertText(fake, [1, 1, 1, 1, 5, 5, 5, 5], { retention: 'session' }); // 4 after 0
  insertText(fake, [9, 9, 9, 9]); // 5
  const held = fake.tree.match('a', [9, 9, 9, 9]).pages[0]!;
  fake.pool.retain(held);
  fake.tree.touch('a', [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3], 12);
  expect([fake.tree.numIdlePages('ordinary'), fake.tree.numIdlePages()]).toEqual([2, 4]);
  expect([...fake.tree.idlePages()].map(({ page }) => page.index)).toEqual([0, 4, 1, 2]);
  expect(evicted(fake.tree, 1, 'ordinary')).toEqual([2]);
  expect(evicted(fake.tree, 9, 'ordinary')).toEqual([1]);
  fake.pool.retain(first!);
  expect(evicted(fake.tree)).toEqual([4]);
  expect(evicted(fake.tree)).toEqual([]);
  fake.pool.release(first!);
  fake.pool.release(held);
  expect(evicted(fake.tree)).toEqual([5, 0]);
  expect([fake.tree.numPages, fake.tree.numNodes, [...fake.tree.owners()].length]).toEqual([0, 0, 0]);
});

test('[RT8][RT9] one call evicts a tree from its leaves upwards and stops below a page in use', () => {
  const fake = createFakeTree(4);
  const [root, left] = insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2]); // 0, 1
  insertText(fake, [1, 1, 1, 1, 3, 3, 3, 3]); // 3
  insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]); // 6
  fake.pool.retain(left!);
  expect([root!.numRefs, fake.tree.numIdlePages()]).toEqual([1, 2]); // 0 is idle, but its descendant is held
  expect([...fake.tree.idlePages()].map(({ page }) => page.index)).toEqual([6, 3]);
  expect(evicted(fake.tree)).toEqual([3, 6]);
  fake.pool.release(left!);
  insertText(fake, [1, 1, 1, 1, 3, 3, 3, 3]); // 8
  expect(evicted(fake.tree)).toEqual([1, 8, 0]);
});

test('[RT9][RT11] more tokens, more forks and a later use keep a page longer', () => {
  const fake = createFakeTree(4, { value: valueByForks });
  insertText(fake, [1, 1, 1, 1, 6]); // 0, 1
  for (let i = 0; i < 14; i++) insertText(fake, [1, 1, 1, 1, 20 + i]); // 0 forks, and is older than all others
  fake.tree.evict({ retention: 'session', isEnough: () => fake.tree.numPages === 1 });
  const [used] = insertText(fake, [2, 2, 2, 2]);
  const [short] = insertText(fake, [3]);
  const [older] = insertText(fake, [4, 4, 4, 4]);
  const [newer] = insertText(fake, [5, 5, 5, 5]);
  fake.tree.touch('a', [9, 9], 0); // matches nothing, but advances the clock
  expect([...fake.tree.idlePages()].map(({ page }) => page.index)).toEqual([
    0,
    newer!.index,
    older!.index,
    used!.index,
    short!.index,
  ]);
  for (let i = 0; i < 8; i++) fake.tree.touch('a', [2, 2, 2, 2], 4); // its last use counts, not how many
  expect(evicted(fake.tree)).toEqual([short!.index, older!.index, newer!.index, 0, used!.index]);
});

test('[RT17] a fork counts for every page before it, also when the continuation was evicted, and growing is no fork', () => {
  const forks: number[] = [];
  const value: PageValue = ({ numForks, lastUse }) => {
    forks.push(numForks);
    return lastUse;
  };
  const fake = createFakeTree(4, { value });
  const forksOfAll = (): number[] => {
    forks.length = 0;
    return [...fake.tree.idlePages()].length === 0 ? [] : forks.toSorted((a, b) => b - a);
  };
  insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2]);
  insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]); // a conversation that goes on
  expect(forksOfAll()).toEqual([0, 0, 0]);
  insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4]);
  expect(forksOfAll()).toEqual([1, 1, 0, 0]);
  fake.tree.evict({ retention: 'session', isEnough: () => fake.tree.numPages === 2 });
  insertText(fake, [1, 1, 1, 1, 2, 2, 2, 2, 5, 5, 5, 5]);
  expect(forksOfAll()).toEqual([2, 2, 0]);
});

test('[RT5][RT10] namespaces are isolated and dropped separately', () => {
  const fake = createFakeTree(4);
  const [mine] = insertText(fake, [1, 2, 3, 4]);
  const [other] = insertText(fake, [1, 2, 3, 4], { namespace: 'b' });
  expect([mine!.index, other!.index]).toEqual([0, 1]);
  expect(matchOf(fake.tree, [1, 2, 3, 4], 'b')).toEqual({ pages: [1], partial: null });
  expect(matchOf(fake.tree, [1, 2, 3, 4], 'c')).toEqual({ pages: [], partial: null });
  expect([...fake.tree.owners()].map(pageIndexes)).toEqual([[0], [1]]);
  fake.pool.retain(mine!);
  fake.tree.drop('a');
  fake.tree.drop('c');
  fake.tree.checkIntegrity();
  expect([mine!.numRefs, other!.numRefs, fake.tree.numPages]).toEqual([1, 1, 1]);
  expect(matchOf(fake.tree, [1, 2, 3, 4], 'a')).toEqual({ pages: [], partial: null });
  expect(matchOf(fake.tree, [1, 2, 3, 4], 'b')).toEqual({ pages: [1], partial: null });
});

test('[RT13] a failing eviction callback leaves the tree intact, and callbacks cannot use the tree', () => {
  const fake = createFakeTree(4);
  for (let token = 0; token < 5; token++) insertText(fake, [token]);
  let numCalls = 0;
  const evict = (onEvict: (page: KvPage) => void): number =>
    fake.tree.evict({ retention: 'session', isEnough: () => false, onEvict });
  const fail = (): void => {
    if (++numCalls === 3) throw new Error('disk on fire');
  };
  expect(() => evict(fail)).toThrow('disk on fire');
  fake.tree.checkIntegrity();
  expect(fake.tree.numPages).toBe(3);
  const uses: (() => unknown)[] = [
    () => fake.tree.match('a', [4]),
    () => fake.tree.insert('b', [4], 1, fake.pool.create(1), 'ordinary'),
    () => fake.tree.drop('a'),
    () => evict(() => {}),
  ];
  for (const use of uses) expect(() => evict(use)).toThrow(/a callback used the prefix tree/);
  expect(evict(() => {})).toBe(3);
});

test('evicts 100,000 unrelated prompts in one call', () => {
  const fake = createFakeTree(1);
  const numPrompts = 100_000;
  for (let token = 0; token < numPrompts; token++) {
    const pages = [{ tier: 'float' as const, index: token, numRefs: 1 }];
    fake.tree.insert('a', [token], 1, pages, 'ordinary');
    pages[0]!.numRefs--;
  }
  expect(fake.tree.evict({ retention: 'session', isEnough: () => fake.tree.numPages === 1 })).toBe(numPrompts - 1);
  fake.tree.checkIntegrity();
  expect(matchOf(fake.tree, [numPrompts - 1])).toEqual({ pages: [numPrompts - 1], partial: null });
});

test('rejects invalid input', () => {
  for (const pageTokens of [0, -1, 1.5, NaN]) {
    const create = () => createPrefixTree({ pageTokens, retain() {}, release() {} });
    expect(create).toThrow(expect.objectContaining({ code: 'invalid_option' }));
  }
  const { tree, pool } = createFakeTree(4);
  expect(() => tree.insert('a', [1, 2, 3, 4, 5], 5, pool.create(1), 'ordinary')).toThrow(/1 pages of 4 tokens for 5/);
  expect(() => tree.insert('a', [1], 2, pool.create(1), 'ordinary')).toThrow(/2 tokens of a sequence of 1/);
  expect(tree.insert('a', [], 0, [], 'session')).toEqual([]);
  tree.checkIntegrity();
});

test('[RT14] an unused session counts as ordinary after a while, until it is used again', () => {
  const fake = createFakeTree(4, { sessionCalls: 3 });
  insertText(fake, [1, 1, 1, 1], { retention: 'session' }); // 0
  insertText(fake, [2, 2, 2, 2], { retention: 'session' }); // 1
  for (const token of [3, 4]) insertText(fake, [token, 0, 0, 0]); // 2, 3
  expect(fake.tree.numIdlePages('ordinary')).toBe(2);
  insertText(fake, [5, 0, 0, 0]); // 4: four calls after the first session
  expect(fake.tree.numIdlePages('ordinary')).toBe(4);
  fake.tree.touch('a', [1, 1, 1, 1], 4);
  fake.tree.touch('a', [5, 0, 0, 0], 4);
  expect(evicted(fake.tree, Infinity, 'ordinary')).toEqual([1, 2, 3, 4]);
  expect(evicted(fake.tree)).toEqual([0]);
});
