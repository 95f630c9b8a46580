import { RuvLLMError } from '../../core/errors.ts';
import type { Embedder } from '../embedder-types.ts';
import type { MemoryGraph } from '../graph/graph.ts';
import type { MemoryServices } from '../common/services.ts';
import type { MemoryStore } from '../types.ts';
import type { RemoteFinder } from '../remote/protocol.ts';
import { createAsk, embedText } from './ask.ts';
import type { Rerank } from './rerank.ts';
import { createMemorySearch, NO_SPACE } from './search.ts';

export interface FinderContext {
  readonly store: MemoryStore;
  readonly services: MemoryServices;
  /** Searches in the store's thread. Default: this thread. */
  readonly finder?: RemoteFinder;
  /** Milliseconds on a clock that does not jump. Default: the time of day. */
  readonly monotonic?: () => number;
  readonly countTokens?: (text: string) => number;
  /** Why the store is a substitute; null: it is not. Default: never. */
  readonly degraded?: () => string | null;
  /** Null: searches by words only. */
  readonly embedder: Embedder | null;
  readonly graph: MemoryGraph;
  /** The current re-ranking; null: none. */
  readonly rerank: () => Rerank | null;
}

/**
 * Searches in the store's thread where possible. Searches here without a remote finder, while degraded, and when tokens are
 * counted or results are re-ranked in this thread. After a disk error it searches here too, because the store handles the error.
 */
export function createFinder(context: FinderContext): RemoteFinder {
  const { store, services, graph, embedder, finder, countTokens, rerank, degraded } = context;
  const now = context.monotonic ?? (() => services.now());
  const search = createMemorySearch({
    store,
    services,
    graph,
    embedder,
    ...(countTokens === undefined ? {} : { countTokens }),
    rerank,
  });
  const here: RemoteFinder = { ...search, ask: createAsk({ store, search, embedder, now }) };
  if (finder === undefined || countTokens !== undefined) return here;

  /** Without an embedder there is nothing to embed. */
  const canEmbedThere = embedder === null || embedder.isBesideStore === true;

  /** Learned re-ranking runs in this thread, only for its tenant. */
  const ranksHere = async (tenant: string, space: string): Promise<boolean> =>
    ((await rerank()?.of(tenant, space)) ?? null) !== null;

  async function beside<T>(isHere: boolean, call: (one: RemoteFinder) => Promise<T>): Promise<T> {
    if (isHere || degraded?.() != null) return call(here);
    try {
      return await call(finder!);
    } catch (error) {
      if (error instanceof RuvLLMError && (error.code === 'io' || error.code === 'disk_full')) return call(here);
      throw error;
    }
  }

  return {
    // The store's thread has its own embedder only.
    async search(tenant, query) {
      if (!canEmbedThere && query.vector === undefined) return here.search(tenant, query);
      const isHere = await ranksHere(tenant, (query.space as string | undefined) ?? embedder?.fingerprint ?? NO_SPACE);
      return beside(isHere, (one) => one.search(tenant, query));
    },
    async ask(tenant, question) {
      const isHere =
        question.search !== undefined &&
        (await ranksHere(tenant, question.embedded?.space ?? embedder?.fingerprint ?? NO_SPACE));
      if (canEmbedThere || question.embedded !== undefined) {
        return beside(isHere, (one) => one.ask(tenant, question));
      }
      const startMs = now();
      const embedded = await embedText(embedder, question.text);
      const embeddingMs = now() - startMs;
      if (question.near === undefined && question.search === undefined) {
        return { embedded, near: null, found: null, embeddingMs, nearMs: 0, searchMs: 0 };
      }
      const reply = await beside(isHere || embedded === null, (one) =>
        one.ask(tenant, { ...question, ...(embedded === null ? {} : { embedded }) }),
      );
      return { ...reply, embedded, embeddingMs };
    },
  };
}
