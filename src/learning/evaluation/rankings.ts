import { createRandom } from '../../core/random.ts';
import { createLexicalIndex } from '../../memory/lexical/lexical-index.ts';
import { searchLexical } from '../../memory/lexical/search-lexical.ts';

/** Orders rows of texts for each query, best first; rows that do not match are missing. */
export type Ranking = readonly (readonly number[])[];

export function rankByWords(texts: readonly string[], queries: readonly string[]): Ranking {
  const index = createLexicalIndex();
  texts.forEach((text, row) => index.set(row, text));
  const indexes = [{ index, filter: null }];
  return queries.map((text) => searchLexical(indexes, { text }, texts.length).map(({ row }) => row));
}

/** By cosine of unit vectors; of equal ones the lowest row first. */
export function rankByVectors(texts: readonly Float32Array[], queries: readonly Float32Array[]): Ranking {
  return queries.map((query) => {
    const scores = texts.map((text) => text.reduce((sum, value, i) => sum + value * query[i]!, 0));
    return Array.from(scores.keys()).sort((a, b) => scores[b]! - scores[a]! || a - b);
  });
}

export function rankAtRandom(numTexts: number, numQueries: number, seed: number): Ranking {
  const random = createRandom(seed);
  return Array.from({ length: numQueries }, () => {
    const order = Array.from({ length: numTexts }, (_, row) => row);
    for (let i = numTexts - 1; i > 0; i--) {
      const j = Math.floor(random.next() * (i + 1));
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    return order;
  });
}
