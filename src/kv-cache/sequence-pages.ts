import { assert } from '../core/errors.ts';
import { placeContent } from './page-content.ts';
import type { PageMemory } from './page-memory.ts';
import { createSequenceState, type StateStep, usableMatch } from './sequence-state.ts';
import type { SharedPages } from './shared-pages.ts';
import type { SpillQueue } from './spill-queue.ts';
import type { StateShelf } from './state-shelf.ts';
import type { KvPage, PagePool, PageTier, PrefixMatch, PrefixTree, Retention } from './types.ts';

/** State shared by the pages of all sequences. */
export interface PageSources {
  readonly memory: PageMemory;
  readonly pool: PagePool;
  readonly tree: PrefixTree;
  readonly spill: SpillQueue | null;
  readonly shared: Pick<SharedPages, 'enqueue'> | null;
  /** Null: no layer is recurrent. */
  readonly states: StateShelf | null;
  readonly counts: PageCounts;
  /** Changes whenever pages are freed: until then there is no more memory than before. */
  readonly room: { numReturns: number };
  newPrivateNamespace(): string;
  /** Evicts idle pages to free memory; false if not possible. */
  makeRoom(tier: PageTier, numPages: number): boolean;
  /** Called once per shared sequence with the prompt's cacheable tokens. */
  observe(prefix: readonly number[]): void;
}

/** Totals since the start. */
export interface PageCounts {
  numLookups: number;
  /** Lookups that found all whole pages of the prompt (or all of a prompt shorter than a page), some tokens, or none. */
  numHits: number;
  numPartialHits: number;
  numMisses: number;
  /** Cached tokens, which were not recomputed. */
  savedTokens: number;
  numEvictions: number;
  numPacked: number;
  numRestored: number;
  /** Pages copied because a prompt diverged inside a shared page. */
  numCopied: number;
}

/** Namespace and retention of a sequence's pages. */
export interface Sharing {
  /** Where the sequence looks up and publishes pages. */
  readonly namespace: string;
  /** False: the namespace is private and ends with the sequence. */
  readonly isShared: boolean;
  readonly retention: Retention;
}

/**
 * The pages of one sequence, oldest tokens first:
 *
 *   0 ···· published ···· numComputed ···· capacity
 *   shared with the tree  private
 *
 * Only pages after the published ones are ever written.
 */
export interface SequencePages {
  readonly pages: readonly KvPage[];
  /** Tokens that fit into the current pages. */
  readonly capacityTokens: number;
  /** Pages to allocate until `numTokens` fit. */
  numMissingPages(numTokens: number): number;
  /**
   * Looks up all `tokens` but the last, in memory and on disk, and allocates pages for the remaining tokens and one more, at most
   * `maxNew`. Returns the cached tokens, or null, holding nothing, if memory for that and a spare page per other running sequence
   * is lacking; it then retries only after pages were freed or more is cached. Alone it always succeeds, dropping the end of its
   * cached prefix if that takes too much.
   */
  attach(tokens: readonly number[], maxNew: number, numOthers: number): number | null;
  /** Allocates the pages missing for `numTokens`; false, allocating none, if memory is lacking. */
  tryGrowTo(numTokens: number): boolean;
  /** pageId * pageTokens + slot of the token at `position`. */
  slotOf(position: number): number;
  /** Page table entries for kernels: page id, or ~id of a packed page. */
  table(): Int32Array;
  /** The state of recurrent layers for the rows [start, start + numRows) of the next step; null: there are none. */
  stateFor(start: number, numRows: number): StateStep | null;
  /** The states it holds. */
  readonly heldStates: readonly number[];
  /** Publishes the whole pages among the first `numComputed` tokens. */
  publish(tokens: readonly number[], numComputed: number): void;
  /** Publishes the computed pages and releases all. The object can be used again. */
  release(tokens: readonly number[], numComputed: number): void;
  /** Releases all pages; unpublished ones are lost. */
  discard(): void;
  /** From now on nothing of the sequence is published; its data is being erased. */
  makePrivate(): void;
  /** Ends the sequence: a private namespace is dropped. */
  end(): void;
}

export function createSequencePages(sources: PageSources, sharing: Sharing): SequencePages {
  const { memory, pool, tree, spill, shared, counts, room, states } = sources;
  const { pageTokens } = memory;
  const { retention } = sharing;
  let { namespace, isShared } = sharing;
  const state = states === null ? null : createSequenceState(states, pageTokens);
  let pages: KvPage[] = [];
  let numPublished = 0;
  let isLookedUp = false;
  /** State at the last failed attempt. */
  let refusal: { readonly numReturns: number; readonly numTokens: number; readonly numFound: number } | null = null;

  const numPagesFor = (numTokens: number): number => Math.ceil(numTokens / pageTokens);
  const numMissingPages = (numTokens: number): number => Math.max(0, numPagesFor(numTokens) - pages.length);

  function discard(): void {
    for (const page of pages) pool.release(page);
    state?.discard();
    pages = []; // a new array: a running step still reads the old one
    numPublished = 0;
  }

  function giveBack(): void {
    if (pages.length > 0) room.numReturns++;
    discard();
  }

  function tryGrowTo(numTokens: number, numSpare = 0): boolean {
    const numMissing = numMissingPages(numTokens);
    if (!sources.makeRoom('float', numMissing + numSpare)) return false;
    pages.push(...pool.allocate('float', numMissing));
    return true;
  }

  /** Restores pages from disk, as far as memory allows and each is intact. */
  function restore(prefix: readonly number[]): void {
    for (const stored of spill?.find(namespace, prefix, pages.length) ?? []) {
      const content = stored.read();
      if (content === null) return;
      const page = placeContent(sources, content);
      if (page === null) return;
      pages.push(page);
      counts.numRestored++;
    }
  }

  /** Takes the whole cached pages; returns their tokens. */
  function takeCached(prefix: readonly number[], match: PrefixMatch): number {
    pages = [...match.pages];
    for (const page of pages) pool.retain(page);
    restore(prefix);
    const numFound = pages.length * pageTokens;
    if (pages.length > match.pages.length) publish(prefix, numFound);
    numPublished = pages.length;
    return numFound;
  }

  /** Copy on write: copies the matching start of a diverging page. Returns its tokens. */
  function copyPartial({ page: shared, numTokens }: NonNullable<PrefixMatch['partial']>): number {
    // A packed page cannot be written, and rounding cannot be undone.
    if (shared.tier !== 'float' || !sources.makeRoom('float', 1)) return 0;
    const [page] = pool.allocate('float', 1);
    memory.copyPage('float', shared.index, page!.index);
    pages.push(page!);
    counts.numCopied++;
    return numTokens;
  }

  function takePartial(partial: NonNullable<PrefixMatch['partial']>): number {
    if (state !== null && !state.canResume(partial.page, partial.numTokens)) return 0;
    const numTokens = copyPartial(partial);
    if (numTokens > 0) state?.resume(partial.page, pages.length * pageTokens - pageTokens + numTokens);
    return numTokens;
  }

  /** Recurrent layers cannot continue after a page without a checkpoint. Returns the tokens that are left. */
  function dropWithoutState(): number {
    const numKept = state!.usablePages(pages);
    for (const page of pages.splice(numKept)) pool.release(page);
    numPublished = Math.min(numPublished, pages.length);
    return pages.length * pageTokens;
  }

  /** Takes the cached part of `prefix`; returns its tokens. */
  function find(prefix: readonly number[]): number {
    const match = tree.match(namespace, prefix);
    // Retained, or a restore could evict it before it is copied.
    if (match.partial !== null) pool.retain(match.partial.page);
    let numFound = takeCached(prefix, match);
    if (match.partial !== null) {
      if (pages.length === match.pages.length) numFound += takePartial(match.partial);
      pool.release(match.partial.page);
    }
    return state === null || state.index !== null ? numFound : dropWithoutState();
  }

  /**
   * Frees memory to continue for a sequence that runs alone. Its cached prefix can exceed what it could compute, because pages
   * come from disk as they were before packing. One slab is left for packing them.
   */
  function growAlone(numTokens: number, numFound: number, maxNew: number): number {
    const numSpare = memory.packed === null || pool.numSlabs < 2 ? 0 : pool.slabPages.float;
    for (let numKept = numFound; ; numKept = pages.length * pageTokens) {
      if (tryGrowTo(Math.min(numTokens, numKept + maxNew), numSpare)) return numKept;
      const last = pages.pop();
      assert(last !== undefined, `no memory for ${numTokens} tokens with all pages free`);
      pool.release(last);
      numPublished = Math.min(numPublished, pages.length);
      state?.discard();
      if (state !== null) dropWithoutState();
    }
  }

  function publish(tokens: readonly number[], numTokens: number): void {
    const held = pages.slice(0, numPagesFor(numTokens));
    const cachedPages = tree.insert(namespace, tokens, numTokens, held, retention);
    for (const [index, page] of cachedPages.entries()) {
      const own = pages[index]!;
      if (page === own) continue;
      // Another sequence computed the same tokens meanwhile: one copy is enough.
      pool.retain(page);
      pool.release(own);
      pages[index] = page;
    }
  }

  /** Retrying at every step would evict others' idle pages and read the same pages from disk each time. */
  function isRefusedStill(prefix: readonly number[]): boolean {
    if (refusal === null || refusal.numReturns !== room.numReturns || prefix.length < refusal.numTokens) return false;
    const { pages: usable, partial } = usableMatch(tree.match(namespace, prefix), state);
    const numFound = usable.length * pageTokens + (state === null ? 0 : (partial?.numTokens ?? 0));
    return numFound <= refusal.numFound;
  }

  function count(prefix: readonly number[], numFound: number): void {
    if (isLookedUp) return; // resuming after a preemption is not a new lookup
    isLookedUp = true;
    sources.observe(prefix);
    counts.numLookups++;
    counts.savedTokens += numFound;
    const numWhole = Math.floor(prefix.length / pageTokens) * pageTokens;
    if (numFound === 0) counts.numMisses++;
    else if (numFound >= (numWhole || prefix.length)) counts.numHits++;
    else counts.numPartialHits++;
  }

  return {
    get pages() {
      return pages;
    },
    get capacityTokens() {
      return pages.length * pageTokens;
    },
    numMissingPages,
    attach(tokens, maxNew, numOthers) {
      assert(pages.length === 0, 'a sequence that holds pages looked up its prefix again');
      const prefix = tokens.slice(0, -1); // the last token is always computed, because its logits are needed
      if (numOthers > 0 && isRefusedStill(prefix)) return null;
      let numFound = find(prefix);
      if (numOthers === 0) {
        numFound = growAlone(tokens.length + 1, numFound, maxNew);
      } else if (!tryGrowTo(Math.min(tokens.length + 1, numFound + maxNew), numOthers)) {
        refusal = { numReturns: room.numReturns, numTokens: prefix.length, numFound };
        discard();
        return null;
      }
      refusal = null;
      if (state !== null && state.index === null) state.resume(pages[numFound / pageTokens - 1] ?? null, numFound);
      tree.touch(namespace, prefix, numFound);
      if (isShared) count(prefix, numFound);
      return numFound;
    },
    tryGrowTo: (numTokens) => tryGrowTo(numTokens),
    slotOf(position) {
      const page = pages[Math.floor(position / pageTokens)];
      assert(page !== undefined && position >= 0, `no page for token ${position}, ${pages.length * pageTokens} fit`);
      assert(page.tier === 'float', `token ${position} would be written to a packed page`);
      return page.index * pageTokens + (position % pageTokens);
    },
    table: () => Int32Array.from(pages, (page) => (page.tier === 'float' ? page.index : ~page.index)),
    stateFor: (start, numRows) => state?.step(start, numRows) ?? null,
    get heldStates() {
      return state?.held ?? [];
    },
    publish(tokens, numComputed) {
      const numWhole = Math.floor(numComputed / pageTokens);
      if (isShared && numWhole !== numPublished) {
        publish(tokens, numWhole * pageTokens);
        numPublished = numWhole;
      }
      state?.savePending(pages, numComputed);
    },
    release(tokens, numComputed) {
      if (numComputed > 0) {
        publish(tokens, numComputed);
        state?.saveFinal(pages, numComputed);
        if (isShared) {
          const computed = tokens.slice(0, numComputed);
          spill?.enqueue(namespace, computed, pages);
          shared?.enqueue(namespace, computed, pages);
        }
      }
      giveBack();
    },
    discard: giveBack,
    makePrivate() {
      if (!isShared) return;
      isShared = false;
      namespace = sources.newPrivateNamespace();
      numPublished = 0;
    },
    end() {
      if (!isShared) tree.drop(namespace);
    },
  };
}
