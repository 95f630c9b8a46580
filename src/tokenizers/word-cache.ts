/** Ids of words seen before: natural text repeats itself, and merging is the expensive part. */
export interface WordCache {
  /** Appends the ids of `word`, computing them by `encode` when they are not known. */
  append(word: string, ids: number[], encode: (word: string, ids: number[]) => void): void;
}

// About 10 MB of words at most. Dropping all of them when full costs one slow pass; tracking use costs every hit.
const MAX_WORDS = 1 << 16;
// Longer words rarely come back, and a cache of megabyte words would have no bound in bytes.
const MAX_WORD_LENGTH = 48;

export function createWordCache(): WordCache {
  const known = new Map<string, readonly number[]>();
  return {
    append(word, ids, encode) {
      if (word.length > MAX_WORD_LENGTH) return encode(word, ids);
      let wordIds = known.get(word);
      if (wordIds === undefined) {
        const fresh: number[] = [];
        encode(word, fresh);
        if (known.size >= MAX_WORDS) known.clear();
        // The word is a slice that keeps its whole text alive; cut out of a new, short string it keeps only that.
        known.set(` ${word}`.slice(1), (wordIds = fresh));
      }
      for (let i = 0; i < wordIds.length; i++) ids.push(wordIds[i]!);
    },
  };
}
