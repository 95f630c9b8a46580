import { RuvLLMError } from '../../core/errors.ts';
import type { Embedder } from '../embedder-types.ts';
import type { MemoryGraph } from '../graph/graph.ts';
import type { MemoryServices } from '../common/services.ts';
import type { MemoryStore } from '../types.ts';
import type { RemoteFinder } from '../remote/protocol.ts';
import { createAsk } from './ask.ts';
import { embedQuestion } from './follow-up.ts';
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
  /** Null: searches by words only. Read by each search, because it may come late. */
  readonly embedder: Embedder | null;
  /** Embeds requests that recall nothing. Default: `embedder`. */
  readonly requestEmbedder?: Embedder | null;
  readonly graph: MemoryGraph;
  /** The current re-ranking; null: none. */
  readonly rerank: () => Rerank | null;
}

/**
 * Searches in the store's thread where possible. Searches here without a remote finder, while degraded, and when tokens are
 * counted or results are re-ranked in this thread. After a disk error it searches here too, because the store handles the error.
 */
export function createFinder(context: FinderContext): RemoteFinder {
  const { store, services, graph, finder, countTokens, rerank, degraded } = context;
  const now = context.monotonic ?? (() => services.now());
  const search = createMemorySearch({
    store,
    services,
    graph,
    get embedder() {
      return context.embedder;
    },
    ...(countTokens === undefined ? {} : { countTokens }),
    rerank,
  });
  const ask = createAsk({
    store,
    search,
    get embedder() {
      return context.embedder;
    },
    now,
  });
  const here: RemoteFinder = { ...search, ask };
  if (finder === undefined || countTokens !== undefined) return here;

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
    async search(tenant, query) {
      const { text, vector, space } = query;
      const { embedder } = context;
      const isText = vector === undefined && typeof text === 'string' && space === undefined;
      // The search rejects a text for another space.
      if (vector === undefined && !isText) return here.search(tenant, query);
      const embedded = isText ? await embedQuestion(embedder, text, query.turns) : null;
      const own = embedder === null ? {} : { space: embedder.fingerprint };
      const whole = isText ? { ...query, ...embedded } : { ...own, ...query };
      const isHere = await ranksHere(tenant, (whole.space as string | undefined) ?? NO_SPACE);
      return beside(isHere, (one) => one.search(tenant, whole));
    },
    async ask(tenant, question) {
      const startMs = now();
      const { embedder, requestEmbedder = embedder } = context;
      // Recall compares with stored texts; everything else of a request must not wait for an encoder.
      const asked = question.search === undefined ? requestEmbedder : embedder;
      const embedded = question.embedded ?? (await embedQuestion(asked, question.text, question.search?.turns));
      const embeddingMs = now() - startMs;
      if (question.near === undefined && question.search === undefined) {
        return { embedded, near: null, found: null, embeddingMs, nearMs: 0, searchMs: 0 };
      }
      const isHere = question.search !== undefined && (await ranksHere(tenant, embedded?.space ?? NO_SPACE));
      const reply = await beside(isHere, (one) =>
        one.ask(tenant, { ...question, ...(embedded === null ? {} : { embedded }) }),
      );
      return { ...reply, embedded, embeddingMs };
    },
  };
}
