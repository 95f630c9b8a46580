import type { SampledToken } from '../../sampling/types.ts';

/** Assigns tokens to visible text, apart from those of reasoning, tool calls and control tokens. */
export interface VisibleTokens {
  /** Adds a token whose kind of text is not known yet. */
  add(token: SampledToken): void;
  /** Returns the tokens of `text`, which the reader has just released. */
  take(text: string): SampledToken[];
  /** Drops the tokens added since: they produced no visible text. */
  drop(): void;
  /** Returns the remaining tokens at the end of an answer. */
  takeRest(): SampledToken[];
}

/** `sizeOf` returns the bytes that a token spells; null: every token is visible. */
export function createVisibleTokens(sizeOf: ((tokenId: number) => number) | null): VisibleTokens {
  const encoder = new TextEncoder();
  let held: SampledToken[] = [];
  let isVisible = true;
  const takeAll = (): SampledToken[] => {
    const all = held;
    held = [];
    return all;
  };
  return {
    add: (token) => void held.push(token),
    take(text) {
      isVisible = true;
      const all = takeAll();
      if (sizeOf === null || all.length < 2) return all;
      const numBytes = encoder.encode(text).length;
      let total = 0;
      let first = all.length;
      while (first > 0 && total < numBytes) total += sizeOf(all[--first]!.tokenId);
      // The first word may have lost its leading space; any further difference consists of markers.
      const isWhole = all.reduce((sum, { tokenId }) => sum + sizeOf(tokenId), 0) <= numBytes + 1;
      return isWhole ? all : all.slice(first);
    },
    drop() {
      held = [];
      isVisible = false;
    },
    takeRest: () => (isVisible ? takeAll() : []),
  };
}
