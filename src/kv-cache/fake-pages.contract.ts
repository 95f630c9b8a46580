import { createPrefixTree, type PrefixTreeOptions } from './prefix-tree.ts';
import type { KvPage, PrefixTree } from './types.ts';

/** Pages that only count references. */
export interface FakePages {
  create(count: number): KvPage[];
  retain(page: KvPage): void;
  release(page: KvPage): void;
}

export function createFakePages(): FakePages {
  let numCreated = 0;
  const countOf = (page: KvPage): { numRefs: number } => {
    if (page.numRefs < 1) throw new Error(`page ${page.index} is free and was retained or released`);
    return page;
  };
  return {
    create: (count) =>
      Array.from({ length: count }, () => ({ tier: 'float' as const, index: numCreated++, numRefs: 1 })),
    retain: (page) => void countOf(page).numRefs++,
    release: (page) => void countOf(page).numRefs--,
  };
}

export function createFakeTree(
  pageTokens: number,
  options: Pick<PrefixTreeOptions, 'sessionCalls' | 'value'> = {},
): { readonly tree: PrefixTree; readonly pool: FakePages } {
  const pool = createFakePages();
  return { tree: createPrefixTree({ pageTokens, retain: pool.retain, release: pool.release, ...options }), pool };
}

export const pageIndexes = (pages: readonly KvPage[]): number[] => pages.map(({ index }) => index);
