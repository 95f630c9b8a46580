import { assert } from '../core/errors.ts';
import { copyPage, type PageMemory } from './page-memory.ts';
import type { SpillQueue } from './spill-queue.ts';
import type { KvPage, PagePool, PrefixTree, Retention } from './types.ts';

/** What the pages of all sequences share. */
export interface PageSources {
  readonly memory: PageMemory;
  readonly pool: PagePool;
  readonly tree: PrefixTree;
  readonly spill: SpillQueue | null;
  readonly counts: PageCounts;
  /** Makes room for float pages by evicting idle ones; false when it cannot. */
  makeRoom(numPages: number): boolean;
}

/** Totals since the start. */
export interface PageCounts {
  numLookups: number;
  /** Lookups that left less than a page to compute, that found something, that found nothing. */
  numHits: number;
  numPartialHits: number;
  numMisses: number;
  /** Tokens that were not computed again. */
  savedTokens: number;
  numEvictions: number;
  numPacked: number;
  numRestored: number;
  /** Pages copied because a prompt left a shared one in its middle. */
  numCopied: number;
}

/** Whose pages a sequence may share, and how long they stay. */
export interface Sharing {
  /** Where the sequence looks for pages and leaves its own. */
  readonly namespace: string;
  /** False: the namespace is the sequence's own, and ends with it. */
  readonly isShared: boolean;
  readonly retention: Retention;
}

/**
 * The pages of one sequence, oldest tokens first:
 *
 *   0 ···· published ···· numComputed ···· capacity
 *   shared with the tree  own
 *
 * Only pages behind the published ones are ever written to.
 */
export interface SequencePages {
  readonly pages: readonly KvPage[];
  /** Tokens that fit into the pages held now. */
  readonly capacityTokens: number;
  /** Pages still to be taken before `numTokens` fit. */
  numMissingPages(numTokens: number): number;
  /**
   * Takes what is known of all `tokens` but the last, from memory and from disk, and room for the rest and one more, though for no more than
   * `maxNew`. Returns how many tokens need not be computed, or null, holding nothing, when there is no room for that and `numSpare` pages.
   */
  attach(tokens: readonly number[], maxNew: number, numSpare: number): number | null;
  /** Takes the pages missing for `numTokens`; false, taking none, when there is no room. */
  tryGrowTo(numTokens: number): boolean;
  /** pageId * pageTokens + slot of the token at `position`. */
  slotOf(position: number): number;
  /** As the kernels want it: page id, or ~id of a packed page. */
  table(): Int32Array;
  /** Makes the whole pages among the first `numComputed` tokens known to others. */
  publish(tokens: readonly number[], numComputed: number): void;
  /** Gives all pages back, known to others as far as they are computed. The list can be used again. */
  release(tokens: readonly number[], numComputed: number): void;
  /** Gives all pages back; what was not published is lost. */
  discard(): void;
  /** The sequence has ended: what only it could find is forgotten. */
  end(): void;
}

export function createSequencePages(sources: PageSources, sharing: Sharing): SequencePages {
  const { memory, pool, tree, spill, counts } = sources;
  const { pageTokens } = memory;
  const { namespace, isShared, retention } = sharing;
  let pages: KvPage[] = [];
  let numPublished = 0;
  let isLookedUp = false;

  const numPagesFor = (numTokens: number): number => Math.ceil(numTokens / pageTokens);
  const numMissingPages = (numTokens: number): number => Math.max(0, numPagesFor(numTokens) - pages.length);

  function discard(): void {
    for (const page of pages) pool.release(page);
    pages = []; // not emptied in place: a step that is running still reads the old one
    numPublished = 0;
  }

  function tryGrowTo(numTokens: number, numSpare = 0): boolean {
    const numMissing = numMissingPages(numTokens);
    if (!sources.makeRoom(numMissing + numSpare)) return false;
    pages.push(...pool.allocate('float', numMissing));
    return true;
  }

  /** From disk: page by page, as far as there is room and each is whole. */
  function restore(known: readonly number[]): void {
    for (const stored of spill?.find(namespace, known, pages.length) ?? []) {
      const content = stored.read();
      if (content === null) break;
      const place = takePlace(content.tier);
      if (place === null) break;
      const target = memory.bytesOf(place.tier, place.index);
      assert(
        target.length === content.bytes.length,
        `a stored page has ${content.bytes.length} bytes, ${target.length} fit`,
      );
      target.set(content.bytes);
      pages.push(place);
      counts.numRestored++;
    }
  }

  function takePlace(tier: KvPage['tier']): KvPage | null {
    if (!pool.canAllocate(tier, 1) && !sources.makeRoom(1)) return null;
    return pool.canAllocate(tier, 1) ? pool.allocate(tier, 1)[0]! : null;
  }

  /** Copy on write: the beginning of a page that goes on differently. */
  function copyPartial(partial: { page: KvPage; numTokens: number }): number {
    // A packed page cannot be written to, and what is rounded cannot be had back exactly.
    if (partial.page.tier !== 'float') return 0;
    pool.retain(partial.page);
    const hasRoom = sources.makeRoom(1);
    if (hasRoom) {
      const [page] = pool.allocate('float', 1);
      copyPage(memory, 'float', partial.page.index, page!.index);
      pages.push(page!);
      counts.numCopied++;
    }
    pool.release(partial.page);
    return hasRoom ? partial.numTokens : 0;
  }

  function publish(tokens: readonly number[], numTokens: number): void {
    const held = pages.slice(0, numPagesFor(numTokens));
    const known = tree.insert(namespace, tokens, numTokens, held, retention);
    for (const [index, page] of known.entries()) {
      const own = pages[index]!;
      if (page === own) continue;
      // Somebody else computed the same tokens meanwhile: one copy is enough.
      pool.retain(page);
      pool.release(own);
      pages[index] = page;
    }
  }

  function count(numTokens: number, numFound: number): void {
    if (isLookedUp) return; // coming back after a preemption is no new request
    isLookedUp = true;
    counts.numLookups++;
    counts.savedTokens += numFound;
    if (numFound === 0) counts.numMisses++;
    else if (numTokens - numFound <= pageTokens) counts.numHits++;
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
    attach(tokens, maxNew, numSpare) {
      assert(pages.length === 0, 'a sequence that holds pages looks for more');
      const known = tokens.slice(0, -1); // the last token is always computed: its logits are wanted
      const match = tree.match(namespace, known);
      pages = [...match.pages];
      for (const page of pages) pool.retain(page);
      restore(known);
      const isExtended = pages.length > match.pages.length;
      let numFound = pages.length * pageTokens;
      if (isExtended) publish(known, numFound);
      numPublished = pages.length;
      if (match.partial !== null && !isExtended) numFound += copyPartial(match.partial);
      if (!tryGrowTo(Math.min(tokens.length + 1, numFound + maxNew), numSpare)) {
        discard();
        return null;
      }
      tree.touch(namespace, known, numFound);
      if (isShared) count(tokens.length, numFound);
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
    publish(tokens, numComputed) {
      const numWhole = Math.floor(numComputed / pageTokens);
      if (!isShared || numWhole === numPublished) return;
      publish(tokens, numWhole * pageTokens);
      numPublished = numWhole;
    },
    release(tokens, numComputed) {
      if (numComputed > 0) {
        publish(tokens, numComputed);
        if (isShared) spill?.enqueue(namespace, tokens.slice(0, numComputed), pages);
      }
      discard();
    },
    discard,
    end() {
      if (!isShared) tree.drop(namespace);
    },
  };
}
