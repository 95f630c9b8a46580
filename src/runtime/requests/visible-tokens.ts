import type { SampledToken } from '../../sampling/types.ts';
import type { Tokenizer } from '../../tokenizers/types.ts';

/** Finds the tokens that a text was said with, among those that also thought, called and marked. */
export interface VisibleTokens {
  /** A token whose text is not known to be anything yet. */
  add(tokens: readonly SampledToken[]): void;
  /** Those of `text`, which has just become known. */
  take(text: string): SampledToken[];
  /** What was added since is no text. */
  forget(): void;
  /** All that is left, at the end. */
  takeRest(): SampledToken[];
}

/** `tokenizer` null: everything is text. */
export function createVisibleTokens(tokenizer: Tokenizer | null): VisibleTokens {
  const encoder = new TextEncoder();
  let held: SampledToken[] = [];
  let isSaying = true;
  const sizeOf = ({ tokenId }: SampledToken): number =>
    tokenizer!.isControl(tokenId) ? tokenizer!.piece(tokenId).length : tokenizer!.tokenBytes(tokenId).length;
  const takeAll = (): SampledToken[] => {
    const all = held;
    held = [];
    return all;
  };
  return {
    add: (tokens) => void held.push(...tokens),
    take(text) {
      isSaying = true;
      const all = takeAll();
      if (tokenizer === null || all.length < 2) return all;
      const numBytes = encoder.encode(text).length;
      let total = 0;
      let first = all.length;
      while (first > 0 && total < numBytes) total += sizeOf(all[--first]!);
      // The first word may have lost the space before it; more than that were marks.
      const isWhole = all.reduce((sum, token) => sum + sizeOf(token), 0) <= numBytes + 1;
      return isWhole ? all : all.slice(first);
    },
    forget() {
      held = [];
      isSaying = false;
    },
    takeRest: () => (isSaying ? takeAll() : []),
  };
}
