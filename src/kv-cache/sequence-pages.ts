import { assert } from '../core/errors.ts';
import { copyPage, type PageMemory } from './page-memory.ts';
import type { SpillQueue } from './spill-queue.ts';
import type { KvPage, PagePool, PageTier, PrefixMatch, PrefixTree, Retention } from './types.ts';

/** What the pages of all sequences share. */
export interface PageSources {
  readonly memory: PageMemory;
  readonly pool: PagePool;
  readonly tree: PrefixTree;
  readonly spill: SpillQueue | null;
  readonly counts: PageCounts;
  /** Changes whenever somebody has given pages back: until then there is no more room than before. */
  readonly room: { numReturns: number };
  /** Makes room for pages by evicting idle ones; false when it cannot. */
  makeRoom(tier: PageTier, numPages: number): boolean;
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
   * `maxNew`. Returns how many tokens need not be computed, or null, holding nothing, when there is no room for that and a spare page for
   * each of `numOthers` running; it then looks again when pages were given back or more is known. Without others it succeeds: where what is known leaves no room to go on, the end of it is let go.
   */
  attach(tokens: readonly number[], maxNew: number, numOthers: number): number | null;
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
  const { memory, pool, tree, spill, counts, room } = sources;
  const { pageTokens } = memory;
  const { namespace, isShared, retention } = sharing;
  let pages: KvPage[] = [];
  let numPublished = 0;
  let isLookedUp = false;
  /** How things were when there was no room. */
  let refusal: { readonly numReturns: number; readonly numTokens: number; readonly numFound: number } | null = null;

  const numPagesFor = (numTokens: number): number => Math.ceil(numTokens / pageTokens);
  const numMissingPages = (numTokens: number): number => Math.max(0, numPagesFor(numTokens) - pages.length);

  function discard(): void {
    for (const page of pages) pool.release(page);
    pages = []; // not emptied in place: a step that is running still reads the old one
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

  /** From disk: page by page, as far as there is room and each is whole. */
  function restore(known: readonly number[]): void {
    for (const stored of spill?.find(namespace, known, pages.length) ?? []) {
      const content = stored.read();
      // Another size is another layout of pages under the same name: as good as not there.
      if (content === null || content.bytes.length !== sizeOf(content.tier)) return;
      if (!sources.makeRoom(content.tier, 1)) return;
      const [page] = pool.allocate(content.tier, 1);
      memory.bytesOf(page!.tier, page!.index).set(content.bytes);
      pages.push(page!);
      counts.numRestored++;
    }
  }

  const sizeOf = (tier: PageTier): number | undefined => (tier === 'float' ? memory : memory.packed)?.pageBytes;

  /** Takes the whole pages that are known; returns the tokens in them. */
  function takeKnown(known: readonly number[], match: PrefixMatch): number {
    pages = [...match.pages];
    for (const page of pages) pool.retain(page);
    restore(known);
    const numFound = pages.length * pageTokens;
    if (pages.length > match.pages.length) publish(known, numFound);
    numPublished = pages.length;
    return numFound;
  }

  /** Copy on write: the beginning of a page that goes on differently. Returns the tokens in it. */
  function copyPartial({ page: shared, numTokens }: NonNullable<PrefixMatch['partial']>): number {
    // A packed page cannot be written to, and what is rounded cannot be had back exactly.
    if (shared.tier !== 'float' || !sources.makeRoom('float', 1)) return 0;
    const [page] = pool.allocate('float', 1);
    copyPage(memory, 'float', shared.index, page!.index);
    pages.push(page!);
    counts.numCopied++;
    return numTokens;
  }

  /** All that is known of `known`; returns the number of tokens. */
  function find(known: readonly number[]): number {
    const match = tree.match(namespace, known);
    // Held, or what is brought from disk could take its place before it is copied.
    if (match.partial !== null) pool.retain(match.partial.page);
    let numFound = takeKnown(known, match);
    if (match.partial === null) return numFound;
    if (pages.length === match.pages.length) numFound += copyPartial(match.partial);
    pool.release(match.partial.page);
    return numFound;
  }

  /**
   * Room to go on for a sequence that has the memory to itself. It can know more than it could have computed: pages come from disk as they
   * were before they were packed. A slab is left for packing them.
   */
  function growAlone(numTokens: number, numFound: number, maxNew: number): number {
    const numSpare = memory.packed === null || pool.numSlabs < 2 ? 0 : pool.slabPages.float;
    for (let numKept = numFound; ; numKept = pages.length * pageTokens) {
      if (tryGrowTo(Math.min(numTokens, numKept + maxNew), numSpare)) return numKept;
      const last = pages.pop();
      assert(last !== undefined, `no memory for ${numTokens} tokens with all pages free`);
      pool.release(last);
      numPublished = Math.min(numPublished, pages.length);
    }
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

  /** Trying at every step would each time drop what others left in memory, and read the same pages from disk. */
  function isRefusedStill(known: readonly number[]): boolean {
    if (refusal === null || refusal.numReturns !== room.numReturns || known.length < refusal.numTokens) return false;
    return tree.match(namespace, known).pages.length * pageTokens <= refusal.numFound;
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
    attach(tokens, maxNew, numOthers) {
      assert(pages.length === 0, 'a sequence that holds pages looked up its prefix again');
      const known = tokens.slice(0, -1); // the last token is always computed: its logits are wanted
      if (numOthers > 0 && isRefusedStill(known)) return null;
      let numFound = find(known);
      if (numOthers === 0) {
        numFound = growAlone(tokens.length + 1, numFound, maxNew);
      } else if (!tryGrowTo(Math.min(tokens.length + 1, numFound + maxNew), numOthers)) {
        refusal = { numReturns: room.numReturns, numTokens: known.length, numFound };
        discard();
        return null;
      }
      refusal = null;
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
      giveBack();
    },
    discard: giveBack,
    end() {
      if (!isShared) tree.drop(namespace);
    },
  };
}
