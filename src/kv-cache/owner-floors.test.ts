import { expect, test } from 'vitest';
import { createOwnerFloors } from './owner-floors.ts';
import { createNode, type RadixNode } from './radix-node.ts';

/** A namespace with one run of pages, last used at `lastUse`. */
function createRoot(numPages: number, lastUse: number): RadixNode {
  const root = createNode(null);
  const node = createNode(root);
  root.children.push(node);
  for (let index = 0; index < numPages; index++) {
    const page = { tier: 'float' as const, index, numRefs: 1 };
    node.pages.push({ page, numUses: 0, numForks: 0, isContinued: false, lastUse, isSession: false });
  }
  return root;
}

type Spaces = Record<string, [numPages: number, lastUse: number]>;
const floorsOf = (spaces: Spaces, now: number, numPages: number) =>
  createOwnerFloors(
    new Map(Object.entries(spaces).map(([name, [pages, lastUse]]) => [name, createRoot(pages, lastUse)])),
    (namespace) => (namespace.startsWith('private') ? null : namespace[0]!),
    { numPages, now },
  );

test('[KC18] half of the pages is divided among the owners, and an owner with no more than that is spared', () => {
  const floors = floorsOf({ a1: [3, 0], a2: [2, 0], b: [4, 0], c: [5, 0], private1: [1, 0] }, 0, 24)!; // 4 each
  expect(['a1', 'a2', 'b', 'c', 'private1', 'unknown'].map((name) => floors.isGuarded(name))).toEqual([
    false,
    false,
    true,
    false,
    false,
    false,
  ]);
  floors.onEvict('c');
  floors.onEvict('a2');
  floors.onEvict('private1');
  expect(['a1', 'a2', 'b', 'c', 'private1'].map((name) => floors.isGuarded(name))).toEqual([true, true, true, true, false]); // prettier-ignore
});

test('[KC18] one owner has no floor, and an owner that used no page in 100,000 calls has none either', () => {
  expect(floorsOf({ a: [3, 0], private1: [3, 0] }, 0, 24)).toBeNull();
  const spaces: Spaces = { a: [3, 50], b: [3, 60] };
  expect(floorsOf(spaces, 100_051, 24)).toBeNull();
  const floors = floorsOf(spaces, 100_050, 24)!;
  expect([floors.isGuarded('a'), floors.isGuarded('b')]).toEqual([true, true]);
  const three = floorsOf({ ...spaces, c: [4, 60] }, 100_051, 16)!; // two are left, with 4 each
  expect(['a', 'b', 'c'].map((name) => three.isGuarded(name))).toEqual([false, true, true]);
});
