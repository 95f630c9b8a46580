import { createTokenIndex } from './token-index.ts';
import type { DraftSource } from './types.ts';

/**
 * Guesses that a sequence repeats itself: its prompt, its own answer, or a text that the caller expects. An edited file or a summary
 * mostly copies its input.
 */
export function createLookupDrafts(expectedIds: readonly number[], numPromptTokens: number): DraftSource {
  const index = createTokenIndex();
  for (const id of expectedIds) index.push(id);
  index.separate();
  /** Where the sequence begins in the index. */
  const first = index.length;

  return {
    propose(tokens, maxTokens) {
      while (index.length < first + tokens.length) index.push(tokens[index.length - first]!);
      // The answer probably begins like the expected text. Its first token often comes with the prompt, without a draft.
      const numDone = tokens.length - numPromptTokens;
      if (numDone < expectedIds.length && (numDone === 0 || (numDone === 1 && tokens.at(-1) === expectedIds[0]))) {
        return { source: 'prediction', tokens: expectedIds.slice(numDone, numDone + maxTokens), evidence: Infinity };
      }
      const match = index.find(tokens);
      if (match === null) return null;
      if (match.end < first) {
        return { source: 'prediction', tokens: index.after(match.end, maxTokens), evidence: match.length };
      }
      return { source: 'lookup', tokens: repeat(index.after(match.end, maxTokens), maxTokens), evidence: match.length };
    },
  };
}

/** A match next to the end is a period: it goes on with itself. */
function repeat(tokens: number[], maxTokens: number): number[] {
  const period = tokens.length;
  while (tokens.length < maxTokens) tokens.push(tokens[tokens.length - period]!);
  return tokens;
}
