import type { Sampler } from '../../sampling/types.ts';
import type { DraftSource } from './types.ts';

/** A guess that takes longer delays all sequences of the step; masks of ordinary grammars take microseconds. */
const MAX_MS = 2;

/**
 * Guesses that a grammar leaves no choice. Each guessed token costs a mask of the grammar, which a hostile one makes expensive: guesses
 * grow from one token, and end for good at the first slow one.
 */
export function createGrammarDrafts(draft: NonNullable<Sampler['draft']>, now: () => number): DraftSource {
  let reach = 1;
  return {
    propose(_tokens, maxTokens) {
      if (reach === 0) return null;
      const startMs = now();
      const tokens = draftSafely(draft, Math.min(reach, maxTokens));
      reach = now() - startMs > MAX_MS ? 0 : 2 * reach;
      return tokens.length === 0 ? null : { source: 'grammar', tokens, evidence: Infinity };
    },
  };
}

/** A grammar that reaches its limits fails its own request when it samples, not the whole step. */
function draftSafely(draft: NonNullable<Sampler['draft']>, maxTokens: number): readonly number[] {
  try {
    return draft(maxTokens);
  } catch {
    return [];
  }
}
