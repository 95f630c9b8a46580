import type { KvPage } from '../../src/kv-cache/types.ts';

export interface CountedPage extends KvPage {
  numRefs: number;
}

/** Replaces a pool if only the numbers of pages matter. */
export interface CountedPages<Page extends CountedPage> {
  readonly numUsed: number;
  /** Adds a new page with one reference. */
  take(page: Page): Page;
  retain(page: KvPage): void;
  release(page: KvPage): void;
}

export function createCountedPages<Page extends CountedPage>(): CountedPages<Page> {
  let numUsed = 0;
  return {
    get numUsed() {
      return numUsed;
    },
    take(page) {
      numUsed++;
      return page;
    },
    retain(page) {
      (page as CountedPage).numRefs++;
    },
    release(page) {
      if (--(page as CountedPage).numRefs === 0) numUsed--;
    },
  };
}
