import { assert, RuvLLMError } from '../core/errors.ts';

/** Hands out KV pages by id and counts who refers to them. */
export interface PagePool {
  readonly numPages: number;
  readonly numFreePages: number;
  canAllocate(count: number): boolean;
  /** `count` page ids, each referenced once; throws `out_of_memory` when `canAllocate(count)` is false. */
  allocate(count: number): number[];
  /** One more reference to a page that is in use. */
  retain(pageId: number): void;
  /** One reference less for each of the pages; a page without references is free. */
  release(pageIds: readonly number[]): void;
  referenceCount(pageId: number): number;
  /** Recounts from `owners`, the page lists that exist; throws `internal` when the pool disagrees. */
  checkIntegrity(owners: Iterable<readonly number[]>): void;
}

/** 2^26 pages of 16 tokens: a billion tokens, far beyond any arena, and small enough for the tables below. */
const MAX_PAGES = 2 ** 26;

/** A pool with all pages free. */
export function createPagePool(numPages: number): PagePool {
  if (!Number.isSafeInteger(numPages) || numPages < 1 || numPages > MAX_PAGES) {
    throw new RuvLLMError('invalid_option', `a page pool has 1 to ${MAX_PAGES} pages, got ${numPages}`);
  }
  const counts = new Uint32Array(numPages);
  // A stack whose top is the page freed last: likely still in a CPU cache, and the order is reproducible.
  const free = Array.from({ length: numPages }, (_, index) => numPages - 1 - index);

  return {
    numPages,
    get numFreePages() {
      return free.length;
    },
    canAllocate: (count) => count <= free.length,
    allocate(count) {
      if (count > free.length) {
        throw new RuvLLMError('out_of_memory', `${count} KV pages asked, ${free.length} of ${numPages} are free`, {
          data: { neededPages: count, freePages: free.length, numPages },
        });
      }
      const pageIds: number[] = [];
      for (let i = 0; i < count; i++) {
        const pageId = free.pop()!;
        counts[pageId] = 1;
        pageIds.push(pageId);
      }
      return pageIds;
    },
    retain(pageId) {
      assert(counts[pageId]! > 0, `retain of KV page ${pageId}, which is not in use`);
      counts[pageId]!++;
    },
    release(pageIds) {
      // Backwards, so that pages allocated again come out in the order they had.
      for (let i = pageIds.length - 1; i >= 0; i--) {
        const pageId = pageIds[i]!;
        assert(counts[pageId]! > 0, `release of KV page ${pageId}, which is not in use`);
        if (--counts[pageId]! === 0) free.push(pageId);
      }
    },
    referenceCount: (pageId) => counts[pageId] ?? 0,
    checkIntegrity(owners) {
      const expected = new Uint32Array(numPages);
      for (const pageIds of owners) for (const pageId of pageIds) expected[pageId]!++;
      const isFree = new Uint8Array(numPages);
      for (const pageId of free) {
        assert(isFree[pageId] === 0, `KV page ${pageId} is twice among the free ones`);
        isFree[pageId] = 1;
      }
      for (let pageId = 0; pageId < numPages; pageId++) {
        const count = counts[pageId]!;
        assert(count === expected[pageId], `KV page ${pageId} counts ${count} references, ${expected[pageId]} exist`);
        assert((count === 0) === (isFree[pageId] === 1), `KV page ${pageId} with ${count} references is misfiled`);
      }
    },
  };
}
