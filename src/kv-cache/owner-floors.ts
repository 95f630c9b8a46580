import { nodesBelow, type RadixNode } from './radix-node.ts';

/** Pages that the requests of others do not evict. */
export interface OwnerFloors {
  isGuarded(namespace: string): boolean;
  /** The namespace lost a page. */
  onEvict(namespace: string): void;
}

/** The owner of a namespace; null: none, so that it has no floor. */
export type OwnerOf = (namespace: string) => string | null;

/** Share of all cached pages that is divided among the owners; the rest goes to the most valuable prefixes of anyone. */
const GUARDED_SHARE = 0.5;
/** Calls of `touch` and `insert` after which an owner without requests has no floor: 1.6 million tokens of others. */
const ACTIVE_CALLS = 100_000;

/** Equal floors of all owners that used a page recently; null if there are fewer than two. */
export function createOwnerFloors(
  roots: ReadonlyMap<string, RadixNode>,
  ownerOf: OwnerOf,
  { numPages, now }: { numPages: number; now: number },
): OwnerFloors | null {
  const owners = new Map<string, { numPages: number; lastUse: number }>();
  const ownerOfNamespace = new Map<string, { numPages: number; lastUse: number }>();
  for (const [namespace, root] of roots) {
    const name = ownerOf(namespace);
    if (name === null) continue;
    const owner = owners.get(name) ?? { numPages: 0, lastUse: -Infinity };
    owners.set(name, owner);
    ownerOfNamespace.set(namespace, owner);
    for (const { pages } of nodesBelow(root)) owner.numPages += pages.length;
    // No page was used after the one before it.
    for (const { pages } of root.children) owner.lastUse = Math.max(owner.lastUse, pages[0]!.lastUse);
  }
  const isActive = ({ lastUse }: { lastUse: number }): boolean => lastUse >= now - ACTIVE_CALLS;
  const numActive = [...owners.values()].filter(isActive).length;
  if (numActive < 2) return null;
  const floor = Math.floor((GUARDED_SHARE * numPages) / numActive);
  return {
    isGuarded(namespace) {
      const owner = ownerOfNamespace.get(namespace);
      return owner !== undefined && isActive(owner) && owner.numPages <= floor;
    },
    onEvict(namespace) {
      const owner = ownerOfNamespace.get(namespace);
      if (owner !== undefined) owner.numPages--;
    },
  };
}
