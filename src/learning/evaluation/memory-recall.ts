import type { Embedder } from '../../memory/embedder-types.ts';
import type { Memory } from '../../memory/memory.ts';
import { ranksIn, type RelevantRanks } from './retrieval.ts';

/** A question and the rows of the texts that answer it. */
export interface RecallQuery {
  readonly text: string;
  /** Earlier messages of the user. Default: none. */
  readonly turns?: readonly string[];
  readonly relevant: readonly number[];
}

/** Ranks by each method for one question. */
export interface RecalledRanks {
  readonly bm25: RelevantRanks;
  readonly vector: RelevantRanks;
  /** The memory's own search: words and meaning together. */
  readonly hybrid: RelevantRanks;
  readonly searchMs: number;
}

interface Found {
  readonly record: { readonly id: string };
}

/** A memory that has been filled with texts. */
export interface FilledMemory {
  /** Positions of relevant texts among results, from 0. */
  ranksOf(found: readonly Found[], relevant: readonly number[]): RelevantRanks;
  /** Ranks by BM25 alone, vectors alone and the memory's search, among the first k. */
  recall(query: RecallQuery, k: number): Promise<RecalledRanks>;
}

/** Texts that are added at once. */
const AT_ONCE = 32;

/** Adds texts to a memory of `embedder`; each text is one row. */
export async function fillMemory(
  memory: Memory,
  embedder: Embedder,
  tenant: string,
  texts: readonly string[],
): Promise<FilledMemory> {
  const rows = new Map<string, number>();
  for (let from = 0; from < texts.length; from += AT_ONCE) {
    const part = texts.slice(from, from + AT_ONCE);
    const ids = await Promise.all(part.map((text) => memory.add(tenant, { text })));
    ids.forEach((id, i) => rows.set(id, from + i));
  }
  const ranksOf: FilledMemory['ranksOf'] = (found, relevant) =>
    ranksIn(found.map(({ record }) => rows.get(record.id) ?? -1), relevant); // prettier-ignore
  return {
    ranksOf,
    async recall({ text, turns = [], relevant }, k) {
      const common = { kinds: ['document'] as const, k, withVectors: false };
      const vector = await embedder.embed(text);
      const space = embedder.fingerprint;
      const bm25 = await memory.store.match(tenant, { text, ...common });
      const nearest = await memory.store.nearest(tenant, { vector, space, ...common });
      const startMs = performance.now();
      const { results } = await memory.search(tenant, { text, vector, space, turns: [...turns], k });
      const searchMs = performance.now() - startMs;
      return {
        bm25: ranksOf(bm25, relevant),
        vector: ranksOf(nearest, relevant),
        hybrid: ranksOf(results, relevant),
        searchMs,
      };
    },
  };
}
