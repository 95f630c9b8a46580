import { assert } from '../core/errors.ts';
import { PAGE_TOKENS } from '../kernels/contract.ts';
import type { PagePool } from './page-pool.ts';

/** The pages of one sequence, oldest tokens first. */
export interface PageList {
  readonly pageIds: readonly number[];
  /** Tokens that fit into the pages held now. */
  readonly capacityTokens: number;
  /** Pages still to be taken before `numTokens` fit. */
  numMissingPages(numTokens: number): number;
  canGrowTo(numTokens: number): boolean;
  /** Takes the missing pages; throws `out_of_memory` and takes none when `canGrowTo` is false. */
  growTo(numTokens: number): void;
  /** pageId * PAGE_TOKENS + slot of the token at `position`. */
  slotOf(position: number): number;
  /** Gives all pages back. */
  release(): void;
}

/** Pages needed for so many tokens. */
export function numPagesFor(numTokens: number): number {
  return Math.ceil(numTokens / PAGE_TOKENS);
}

/** An empty list that takes its pages from `pool`. */
export function createPageList(pool: PagePool): PageList {
  let pageIds: number[] = [];
  const list: PageList = {
    get pageIds() {
      return pageIds;
    },
    get capacityTokens() {
      return pageIds.length * PAGE_TOKENS;
    },
    numMissingPages: (numTokens) => Math.max(0, numPagesFor(numTokens) - pageIds.length),
    canGrowTo: (numTokens) => pool.canAllocate(list.numMissingPages(numTokens)),
    growTo(numTokens) {
      pageIds.push(...pool.allocate(list.numMissingPages(numTokens)));
    },
    slotOf(position) {
      assert(
        position >= 0 && position < list.capacityTokens,
        `no page for token ${position}, ${list.capacityTokens} fit`,
      );
      return pageIds[Math.floor(position / PAGE_TOKENS)]! * PAGE_TOKENS + (position % PAGE_TOKENS);
    },
    release() {
      pool.release(pageIds);
      pageIds = []; // not emptied in place: a step that is running still reads the old one
    },
  };
  return list;
}
