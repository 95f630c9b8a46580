import { RuvLLMError } from '../../core/errors.ts';
import type { Embedder } from '../embedder-types.ts';
import type { MemoryGraph } from '../graph/graph.ts';
import type { MemoryContext } from '../memory.ts';
import type { RemoteFinder } from '../remote/protocol.ts';
import { createAsk, embedText } from './ask.ts';
import { createMemorySearch } from './search.ts';

export interface FinderContext extends Pick<
  MemoryContext,
  'store' | 'services' | 'finder' | 'monotonic' | 'countTokens' | 'rerank' | 'degraded'
> {
  readonly embedder: Embedder;
  readonly graph: MemoryGraph;
}

/**
 * Looks beside the store where somebody does that, and here where not: without such, where the store is another one than it should be,
 * and where what counts tokens or re-ranks is ours. A failure of the disk is tried here again, for the store decides what it means.
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
    ...(rerank === undefined ? {} : { rerank }),
  });
  const here: RemoteFinder = { ...search, ask: createAsk({ store, search, embedder, now }) };
  if (finder === undefined || countTokens !== undefined || rerank !== undefined) return here;

  async function beside<T>(call: (one: RemoteFinder) => Promise<T>): Promise<T> {
    if (degraded?.() != null) return call(here);
    try {
      return await call(finder!);
    } catch (error) {
      if (error instanceof RuvLLMError && (error.code === 'io' || error.code === 'disk_full')) return call(here);
      throw error;
    }
  }

  return {
    // The store's thread knows its own embedder only: what another one embeds is looked for here.
    search: async (tenant, query) =>
      embedder.isBesideStore === true || query.vector !== undefined
        ? beside((one) => one.search(tenant, query))
        : here.search(tenant, query),
    async ask(tenant, question) {
      if (embedder.isBesideStore === true || question.embedded !== undefined) {
        return beside((one) => one.ask(tenant, question));
      }
      const startMs = now();
      const embedded = await embedText(embedder, question.text);
      const embeddingMs = now() - startMs;
      if (embedded === null) return { embedded, near: null, found: null, embeddingMs, nearMs: 0, searchMs: 0 };
      if (question.near === undefined && question.search === undefined) {
        return { embedded, near: null, found: null, embeddingMs, nearMs: 0, searchMs: 0 };
      }
      const reply = await beside((one) => one.ask(tenant, { ...question, embedded }));
      return { ...reply, embedded, embeddingMs };
    },
  };
}
