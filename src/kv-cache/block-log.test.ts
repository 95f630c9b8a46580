import { expect, test } from 'vitest';
import { sha256, toHex } from '../core/sha256.ts';
import { type BlockEvent, type BlockLog, createBlockLog } from './block-log.ts';
import { type CacheNamespace, namespaceId } from './cache-namespace.ts';
import { createPrefixTree } from './prefix-tree.ts';
import type { KvPage, PrefixTree } from './types.ts';

const pageTokens = 4;
const NAMESPACE: CacheNamespace = { tenant: 'a', modelHash: 'm', adapterHash: null, policy: 'f16' };
const shared = namespaceId(NAMESPACE);

function openTree(salt = 'salt'): { tree: PrefixTree; log: BlockLog; pages: (count: number) => KvPage[] } {
  const log = createBlockLog({ salt, pageTokens });
  const refs = new Map<KvPage, number>();
  const change = (page: KvPage, by: number): void => {
    (page as { numRefs: number }).numRefs += by;
    refs.set(page, page.numRefs);
  };
  const tree = createPrefixTree({ pageTokens, retain: (page) => change(page, 1), release: (page) => change(page, -1) });
  let next = 0;
  const pages = (count: number): KvPage[] =>
    Array.from({ length: count }, () => ({ tier: 'float', index: next++, numRefs: 0 }));
  return { tree: log.wrap(tree), log, pages };
}

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_, i) => from + i);

/** The blocks that a reader of the events believes to be cached. */
function replay(events: readonly BlockEvent[], blocks = new Set<string>()): Set<string> {
  for (const event of events) {
    if (event.type === 'cleared') blocks.clear();
    else for (const hash of event.hashes) if (event.type === 'stored') blocks.add(hash); else blocks.delete(hash); // prettier-ignore
  }
  return blocks;
}

test('[BE1] reports whole pages once, with the hash of the page before them', () => {
  const { tree, log, pages } = openTree();
  const tokens = range(0, 10);
  tree.insert(shared, tokens, 10, pages(3), 'ordinary');
  const hashes = log.hashesOf(shared, tokens);
  expect(hashes).toHaveLength(2);
  expect(log.take()).toEqual([{ type: 'stored', hashes, parent: null }]);
  const longer = [...range(0, 8), ...range(50, 8)];
  tree.insert(shared, longer, 16, pages(4), 'ordinary');
  const [, parent, ...added] = log.hashesOf(shared, longer);
  expect(parent).toBe(hashes[1]);
  expect(log.take()).toEqual([{ type: 'stored', hashes: added, parent }]);
  tree.insert(shared, longer, 16, pages(4), 'ordinary');
  expect(log.take()).toEqual([]);
});

test('[BE2] a reader of the events has the pages of the tree after evictions and drops', () => {
  const { tree, log, pages } = openTree();
  for (let i = 0; i < 5; i++) tree.insert(shared, [...range(0, 4), ...range(100 * i, 8)], 12, pages(3), 'ordinary');
  const other = namespaceId({ ...NAMESPACE, tenant: 'b' });
  tree.insert(other, range(0, 8), 8, pages(2), 'ordinary');
  const blocks = replay(log.take());
  expect(blocks.size).toBe(tree.numPages);
  for (const page of [...tree.owners()].flat()) (page as { numRefs: number }).numRefs = 1;
  let numEvicted = 0;
  tree.evict({ retention: 'session', isEnough: () => numEvicted++ >= 4 });
  replay(log.take(), blocks);
  expect(blocks.size).toBe(tree.numPages);
  tree.drop(other);
  replay(log.take(), blocks);
  expect(blocks.size).toBe(tree.numPages);
  tree.drop(shared);
  expect(replay(log.take(), blocks).size).toBe(0);
});

test('[BE3] a page that was evicted is reported again when it is cached again', () => {
  const { tree, log, pages } = openTree();
  const [page] = pages(1);
  tree.insert(shared, range(0, 4), 4, [page!], 'ordinary');
  const [stored] = log.take();
  if (stored?.type !== 'stored') throw new Error('the page was not reported');
  (page as { numRefs: number }).numRefs = 1;
  tree.evict({ retention: 'session', isEnough: () => false });
  tree.insert(shared, range(0, 4), 4, [page!], 'ordinary');
  expect(log.take()).toEqual([{ type: 'removed', hashes: stored.hashes }, stored]);
});

test('[BE4] hashes depend on salt, tenant, model and adapter, and not on the precision of pages', () => {
  const tokens = range(0, 4);
  const hashOf = (namespace: CacheNamespace, salt = 'salt'): string =>
    openTree(salt).log.hashesOf(namespaceId(namespace), tokens)[0]!;
  const first = hashOf(NAMESPACE);
  expect(first).toMatch(/^[0-9a-f]{16}$/);
  expect(hashOf({ ...NAMESPACE, policy: 'q8' })).toBe(first);
  const others = [
    hashOf(NAMESPACE, 'another'),
    hashOf({ ...NAMESPACE, tenant: 'b' }),
    hashOf({ ...NAMESPACE, modelHash: 'n' }),
    hashOf({ ...NAMESPACE, adapterHash: 'x' }),
  ];
  expect(new Set([first, ...others]).size).toBe(5);
});

test('[BE5] the hash of a page cannot be computed from the hash before it without the salt', () => {
  const [first, second] = openTree().log.hashesOf(shared, range(0, 8));
  const parent = Uint8Array.from(first!.match(/../g)!, (pair) => Number.parseInt(pair, 16));
  const tokens = new Uint8Array(Int32Array.from(range(4, 4)).buffer);
  expect(second).not.toBe(toHex(sha256(Uint8Array.from([...parent, ...tokens]))).slice(0, 16));
});

test('[BE6] reports neither private pages nor pages of images', () => {
  const { tree, log, pages } = openTree();
  tree.insert('0', range(0, 8), 8, pages(2), 'ordinary');
  expect(log.take()).toEqual([]);
  tree.drop('0');
  expect(log.take()).toEqual([]);
  tree.insert(shared, [...range(0, 4), -1, -2, -3, -4, ...range(0, 4)], 12, pages(3), 'ordinary');
  expect(log.take()).toMatchObject([{ type: 'stored', hashes: [expect.any(String)] }]);
});
