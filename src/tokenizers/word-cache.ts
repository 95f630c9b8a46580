/** Cached ids of words: natural text repeats itself, and merging is the expensive part. */
export interface WordCache {
  /** Appends the ids of `word`, computed by `encode` on a cache miss. */
  append(word: string, ids: number[], encode: (word: string, ids: number[]) => void): void;
}

// About 10 MB at most. Clearing a full cache costs one slow pass; tracking use would cost every hit.
const MAX_WORDS = 1 << 16;
// Longer words rarely repeat, and megabyte words would leave the cache without a bound in bytes.
const MAX_WORD_LENGTH = 48;

export function createWordCache(): WordCache {
  const idsByWord = new Map<string, readonly number[]>();
  return {
    append(word, ids, encode) {
      if (word.length > MAX_WORD_LENGTH) return encode(word, ids);
      let wordIds = idsByWord.get(word);
      if (wordIds === undefined) {
        const fresh: number[] = [];
        encode(word, fresh);
        if (idsByWord.size >= MAX_WORDS) idsByWord.clear();
        // The word is a slice that keeps its whole text alive; a slice of a new, short string keeps only that.
        idsByWord.set(` ${word}`.slice(1), (wordIds = fresh));
      }
      for (let i = 0; i < wordIds.length; i++) ids.push(wordIds[i]!);
    },
  };
}
