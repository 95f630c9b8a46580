import { createLeafHeap, type PageHistory, type PageValue, type Rank } from './leaf-order.ts';

/** Replays lookups with one eviction order, to count the hits it would have had. It has no pages and keeps no tokens. */
export interface ShadowCache {
  /** Looks up the pages of a prompt and keeps them, with at most `maxPages` in all; returns how many it had. */
  lookUp(pageIds: readonly number[], maxPages: number): number;
  clear(): void;
}

interface ShadowPage extends PageHistory {
  readonly id: number;
  readonly parent: ShadowPage | null;
  numChildren: number;
  isContinued: boolean;
  numForks: number;
  lastUse: number;
}

interface ShadowLeaf extends Rank {
  readonly page: ShadowPage;
}

/** Evicting a little more than needed makes the search for leaves rare. */
const LOW_MARK = 0.95;

export function createShadowCache(pageTokens: number, value: PageValue): ShadowCache {
  const pages = new Map<number, ShadowPage>();
  let now = 0;

  function evict(numKept: number): void {
    const leaves = createLeafHeap<ShadowLeaf>();
    const offer = (page: ShadowPage): void => {
      if (page.numChildren === 0 && page.lastUse < now) {
        leaves.push({ page, isSession: false, value: value(page, pageTokens, now), lastUse: page.lastUse });
      }
    };
    for (const page of pages.values()) offer(page);
    for (let leaf = leaves.pop(); leaf !== undefined && pages.size > numKept; leaf = leaves.pop()) {
      const { id, parent } = leaf.page;
      pages.delete(id);
      if (parent === null) continue;
      parent.numChildren--;
      offer(parent);
    }
  }

  return {
    lookUp(pageIds, maxPages) {
      const found: ShadowPage[] = [];
      for (let page = pages.get(pageIds[0]!); page !== undefined; page = pages.get(pageIds[found.length]!))
        found.push(page);
      // As the tree counts: a call per lookup and per computed page.
      now += 1 + pageIds.length - found.length;
      for (const page of found) page.lastUse = now;
      let parent = found.at(-1) ?? null;
      if (found.length < pageIds.length && parent?.isContinued === true) for (const page of found) page.numForks++;
      for (const id of pageIds.slice(found.length)) {
        if (parent !== null) {
          parent.numChildren++;
          parent.isContinued = true;
        }
        parent = { id, parent, numChildren: 0, isContinued: false, numForks: 0, lastUse: now };
        pages.set(id, parent);
      }
      if (pages.size > maxPages) evict(LOW_MARK * maxPages);
      return found.length;
    },
    clear: () => pages.clear(),
  };
}
