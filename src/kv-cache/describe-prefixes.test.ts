import { expect, test } from 'vitest';
import { namespaceId } from './cache-namespace.ts';
import { createFakeTree } from './fake-pages.contract.ts';
import type { PrefixQuery } from './types.ts';
import type { PrefixTree, Retention } from './types.ts';

const idOf = (tenant: string, adapterHash: string | null = null): string =>
  namespaceId({ tenant, modelHash: 'm', adapterHash, policy: 'p' });
const ALL: PrefixQuery = { tenant: null, maxDepth: 8, maxNodes: 100, numPreview: 3 };

function plant() {
  const fake = createFakeTree(4);
  const insert = (namespace: string, tokens: readonly number[], retention: Retention = 'ordinary'): void => {
    const pages = fake.pool.create(Math.ceil(tokens.length / 4));
    fake.tree.insert(namespace, tokens, tokens.length, pages, retention);
    for (const page of pages) fake.pool.release(page);
  };
  const use = (namespace: string, tokens: readonly number[]): void => fake.tree.touch(namespace, tokens, tokens.length);
  return { ...fake, insert, use };
}

const shape = (tree: PrefixTree, query = ALL) =>
  tree.describe(query).nodes.map(({ id, parent, tenant, startToken, numTokens, numUses, previewIds }) => [
    id, parent, tenant, startToken, numTokens, numUses, previewIds,
  ]); // prettier-ignore

test('[RT15] reports runs of tokens with start, uses and first tokens, most used first', () => {
  const { tree, insert, use } = plant();
  const alice = idOf('alice');
  insert(alice, [1, 2, 3, 4, 5, 6, 7, 8]);
  insert(alice, [1, 2, 3, 4, 9, 9, 9, 9]);
  use(alice, [1, 2, 3, 4, 9, 9, 9, 9]);
  use(alice, [1, 2, 3, 4]);
  expect(shape(tree)).toEqual([
    [0, null, 'alice', 0, 4, 2, [1, 2, 3]],
    [1, 0, 'alice', 4, 4, 1, [9, 9, 9]],
    [2, 0, 'alice', 4, 4, 0, [5, 6, 7]],
  ]);
  expect(tree.describe(ALL)).toMatchObject({
    isComplete: true,
    nodes: [
      {
        depth: 0,
        numChildren: 2,
        lastUseAgo: 0,
        numFloatPages: 1,
        numPackedPages: 0,
        numUsedPages: 0,
        isSession: false,
      },
      { depth: 1, numChildren: 0, lastUseAgo: 1 },
      { depth: 1, numChildren: 0, lastUseAgo: 3 },
    ],
  });
});

test('[RT15] hides other tenants and private namespaces', () => {
  const { tree, insert } = plant();
  insert(idOf('alice'), [1, 1, 1, 1]);
  insert(idOf('bob'), [2, 2, 2, 2]);
  insert(idOf('bob', 'hash'), [3, 3, 3, 3]);
  insert('17', [4, 4, 4, 4]);
  expect(shape(tree, { ...ALL, tenant: 'alice' }).map(([, , tenant]) => tenant)).toEqual(['alice']);
  expect(tree.describe({ ...ALL, tenant: 'bob' }).nodes.map(({ adapterHash }) => adapterHash)).toEqual([null, 'hash']);
  expect(shape(tree)).toHaveLength(3);
  expect(shape(tree, { ...ALL, tenant: 'nobody' })).toEqual([]);
});

test('[RT15] limits depth and number, lists parents before children, and reports omissions', () => {
  const { tree, insert, use } = plant();
  const alice = idOf('alice');
  const begin = [1, 1, 1, 1];
  for (let i = 2; i < 50; i++) insert(alice, [...begin, i, i, i, i, 0, 0, 0, 0]);
  use(alice, [...begin, 30, 30, 30, 30]);
  const { nodes, isComplete } = tree.describe({ ...ALL, maxNodes: 3 });
  expect(isComplete).toBe(false);
  expect(nodes).toHaveLength(3);
  expect(nodes[0]).toMatchObject({ parent: null, numChildren: 48 });
  expect(nodes[1]).toMatchObject({ parent: 0, numUses: 1, previewIds: [30, 30, 30] });
  expect(tree.describe({ ...ALL, maxDepth: 1 })).toMatchObject({ isComplete: false, nodes: [{ id: 0 }] });
  for (const { id, parent } of tree.describe(ALL).nodes) expect(parent ?? -1).toBeLessThan(id);
});

test('[RT15] visits a bounded number of nodes', () => {
  const { tree, insert } = plant();
  for (let i = 0; i < 6000; i++) insert(idOf('alice'), [i, i, i, i]);
  const { nodes, isComplete } = tree.describe({ ...ALL, maxNodes: 1_000_000 });
  expect([nodes.length, isComplete]).toEqual([5000, false]);
});

test('[RT16] lists the pages that sessions keep', () => {
  const { tree, insert } = plant();
  const alice = idOf('alice');
  insert(alice, [1, 1, 1, 1, 2, 2, 2, 2]);
  expect([...tree.sessionPages()]).toEqual([]);
  insert(alice, [1, 1, 1, 1, 3, 3, 3, 3], 'session');
  insert(alice, [1, 1, 1, 1, 3, 3, 3, 3, 4, 4, 4, 4]);
  expect([...tree.sessionPages()]).toHaveLength(2);
});
