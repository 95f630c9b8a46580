import { assert } from '../core/errors.ts';
import type { StateShelf } from './state-shelf.ts';
import type { KvPage, PrefixMatch } from './types.ts';

/** Tokens between two checkpoints of a sequence that generates; a step of several tokens always leaves one. */
const CHECKPOINT_TOKENS = 64;

/** The state of one sequence in a step, and where a copy is saved on the way. */
export interface StateStep {
  readonly index: number;
  readonly copy: { readonly index: number; readonly numRows: number } | null;
}

/**
 * The state of recurrent layers for one sequence. A running sequence has one state; steps that cross a page border also leave a
 * copy there, which becomes the checkpoint of that page once the step has succeeded.
 */
export interface SequenceState {
  /** The tokens of a prompt's cached pages with a usable state: up to the last page with a checkpoint. */
  usablePages(pages: readonly KvPage[]): number;
  /** Whether a state was saved after exactly these tokens of a page. */
  canResume(page: KvPage, numTokens: number): boolean;
  /** Takes a state that continues after `page`; null: from the first token. */
  resume(page: KvPage | null, numTokens: number): void;
  /** For the rows [start, start + numRows) of the next step. */
  step(start: number, numRows: number): StateStep;
  /** Saves the copy of the last step, if its tokens are computed. */
  savePending(pages: readonly KvPage[], numComputed: number): void;
  /** Saves the state itself after the last token and gives it up. */
  saveFinal(pages: readonly KvPage[], numComputed: number): void;
  discard(): void;
  /** Null: it has none, because it does not run. */
  readonly index: number | null;
  /** Its state and the copy of a step that has not ended. */
  readonly held: readonly number[];
}

export function createSequenceState(states: StateShelf, pageTokens: number): SequenceState {
  let index: number | null = null;
  /** Tokens that the state contains once the current step has ended. */
  let numTokens = 0;
  let pending: { readonly index: number; readonly numTokens: number } | null = null;

  const isWhole = (page: KvPage): boolean => states.find(page)?.numTokens === pageTokens;

  function discard(): void {
    if (index !== null) states.free(index);
    if (pending !== null) states.free(pending.index);
    index = null;
    pending = null;
  }

  function savePending(pages: readonly KvPage[], numComputed: number): void {
    if (pending === null) return;
    const { index: copy, numTokens: numSaved } = pending;
    pending = null;
    // A step that was aborted has computed no tokens, but may have written the copy.
    if (numSaved > numComputed) states.free(copy);
    else states.attach(pages[numSaved / pageTokens - 1]!, { index: copy, numTokens: pageTokens });
  }

  return {
    usablePages: (pages) => pages.findLastIndex(isWhole) + 1,
    canResume: (page, count) => states.find(page)?.numTokens === count,
    resume(page, count) {
      assert(index === null, 'a sequence with a state took another one');
      const source = page === null ? null : states.find(page);
      if (page !== null) states.touch(page);
      index = states.take();
      // With no other memory left, the checkpoint itself was taken.
      if (source !== null && source.index !== index) states.copy(source.index, index);
      numTokens = count;
    },
    step(start, numRows) {
      assert(index !== null && start === numTokens, `a step from token ${start} with a state of ${numTokens} tokens`);
      const end = start + numRows;
      numTokens = end;
      const border = Math.floor(end / pageTokens) * pageTokens;
      const isWanted = border > start && (numRows > 1 || border % CHECKPOINT_TOKENS === 0);
      const copy = isWanted ? states.tryTake() : null;
      if (copy === null) return { index, copy: null };
      pending = { index: copy, numTokens: border };
      return { index, copy: { index: copy, numRows: border - start } };
    },
    savePending,
    saveFinal(pages, numComputed) {
      savePending(pages, numComputed);
      if (index === null) return;
      const last = pages[Math.ceil(numComputed / pageTokens) - 1];
      // During a step that is aborted the state belongs to later tokens.
      if (last === undefined || numTokens !== numComputed) return discard();
      states.attach(last, { index, numTokens: numComputed - (Math.ceil(numComputed / pageTokens) - 1) * pageTokens });
      index = null;
    },
    discard,
    get index() {
      return index;
    },
    get held() {
      return [index, pending?.index ?? null].filter((state) => state !== null);
    },
  };
}

/** The part of a match after which a prompt can continue; takes and changes nothing. */
export function usableMatch(match: PrefixMatch, state: SequenceState | null): PrefixMatch {
  if (state === null) return match;
  const { pages, partial } = match;
  if (partial !== null && state.canResume(partial.page, partial.numTokens)) return match;
  return { pages: pages.slice(0, state.usablePages(pages)), partial: null };
}
